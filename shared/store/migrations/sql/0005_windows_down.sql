drop table model_windows;
