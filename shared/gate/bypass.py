"""Whether this process was started with the approvals of patterns off.

Read once, when this module is imported, from the environment that the process was started with: what is put into
`os.environ` later, by whatever code, changes nothing. It is no setting: no file and no request can switch it on.
"""

from __future__ import annotations

import os
from typing import Final

VARIABLE: Final = "NIGHTSHIFT_GATE_BYPASS"
LAUNCHED_WITH_BYPASS: Final[bool] = os.environ.get(VARIABLE, "") == "1"
