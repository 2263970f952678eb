"""The machine and what runs on it: rights, processes, services, packages, containers, clusters, clouds, databases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from shared.gate.options import Programs, names, parse
from shared.gate.rules import away, packages
from shared.gate.shell.found import Invocation
from shared.gate.shell.marks import UNKNOWN, shown
from shared.gate.verdict import Decision, Hit

_ALWAYS = Programs[tuple[str, str]](
    {
        "sudo doas su pkexec sudoedit runuser setpriv gosu su-exec": ("privilege", "acts as somebody else"),
        "chroot unshare nsenter setns capsh bwrap firejail": ("privilege", "changes what it may see or do"),
        (
            "useradd userdel usermod adduser deluser groupadd groupdel groupmod passwd chpasswd chage visudo vipw"
            " gpasswd newgrp dscl"
        ): ("users", "changes who may do what on this machine"),
        (
            "iptables ip6tables nft ufw firewall-cmd pfctl ipset ebtables tc sysctl setenforce aa-disable"
            " apparmor_parser route ifconfig"
        ): ("network.settings", "changes the network or the kernel's settings"),
        "mount umount losetup swapoff swapon modprobe insmod rmmod depmod dkms update-grub grub-install"
        " grub-mkconfig efibootmgr"
        " update-initramfs dracut mkinitcpio lvcreate lvextend lvresize vgextend resize2fs tune2fs xfs_growfs"
        " e2fsck fsck debugfs"
        " dd_rescue ddrescue partclone": ("system", "changes disks, modules or how the machine starts"),
        "crontab at batch anacron atrm launchctl schtasks": ("later", "starts programs later, when nobody looks"),
        (
            "hostnamectl timedatectl localectl date_set hwclock chsh chfn update-alternatives alternatives ldconfig"
            " dpkg-divert"
        ): ("system", "changes settings of the machine"),
        "gcore gdb lldb strace ltrace ptrace perf bpftrace bpftool rr frida frida-trace radare2 r2 dtrace": (
            "trace",
            "looks into, or changes, other programs while they run",
        ),
        "gpg gpg2 ssh-keygen ssh-add ssh-agent openssl_key keytool security secret-tool pass op bw vault lpass"
        " gopass age-keygen"
        " keyctl kinit klist": ("secret.keys", "handles keys or passwords"),
        (
            "psql mysql mariadb sqlite3 sqlcmd mongo mongosh redis-cli valkey-cli cqlsh clickhouse-client influx"
            " cockroach"
        ): (
            "",
            "",
        ),
        "dropdb dropuser mysqladmin pg_resetwal pg_ctl initdb createuser pg_dropcluster": (
            "database",
            "changes or stops a database",
        ),
        "pg_dump pg_dumpall mysqldump mongodump": ("database.dump", "copies a whole database"),
        "pg_restore mongorestore": ("database", "writes into a database"),
        "aws gcloud az doctl heroku flyctl fly vercel netlify firebase supabase wrangler linode-cli oci ibmcloud"
        " hcloud scw eksctl"
        " kops": ("", ""),
        "gnome-terminal xterm konsole xdotool ydotool wmctrl osascript xclip xsel pbpaste pbcopy wl-copy wl-paste"
        " screencapture scrot"
        " import ffmpeg_grab": ("desktop", "acts on a person's screen"),
        "nightshift": ("own", "acts on this service itself"),
        "wine powershell pwsh cmd cmd.exe powershell.exe reg reg.exe wsl": (
            "other_shell",
            "is a shell whose language is not read here",
        ),
        "expect tclsh vbscript cscript wscript rundll32 mshta regsvr32 certutil bitsadmin": (
            "other_shell",
            "runs a language that is not read here",
        ),
        "logrotate journalctl_vacuum wevtutil auditctl": ("system", "changes what is recorded"),
        "docker-machine vagrant virsh VBoxManage qemu-system-x86_64 qemu-img multipass lxc lxd incus": (
            "machines",
            "changes or starts other machines",
        ),
        "ansible ansible-playbook ansible-pull puppet chef-client salt salt-call fab capistrano cap": (
            "machines",
            "changes other machines",
        ),
        "twine npm-publish cargo-publish": ("publish", "publishes"),
    }
)


def hits(call: Invocation) -> Iterator[Hit]:
    if not call.argv:
        return
    if {"--version", "--help"} & set(call.words) and len(call.words) == 1:
        return
    for rule, why in _ALWAYS.of(call.program):
        if rule and not _looks(call):
            yield _hit(rule, f"{shown(call.program)} {why}", call)
    for found in _RULES.of(call.program):
        for rule, why in found(call):
            yield _hit(rule, why, call)


_SHOWS: Mapping[str, str] = {
    "crontab": r"^-l$",
    "mount": r"^$|^-l$",
    "gpg": r"^--(?:list-keys|verify|fingerprint|version)\b",
    "timedatectl": r"^(?:status)?$",
    "hostnamectl": r"^(?:status)?$",
    "sysctl": r"^-?a?$|^[\w.]+$",
    "ifconfig": r"^-?a?$|^\w+$",
    "route": r"^-?n?$",
    "klist": r"^$",
    "ansible": r"^--version$",
    "ssh-keygen": r"^-l",
    "ufw": r"^status",
    "launchctl": r"^list$",
    "vagrant": r"^(?:status|global-status)$",
    "update-alternatives": r"^--(?:list|display|query)",
    "ssh-add": r"^-[lL]$",
    "virsh": r"^list\b",
    "losetup": r"^(?:-a|-l)?$",
    "perf": r"^(?:list|report|stat)\b",
    "ansible-playbook": r"--(?:check|syntax-check|list-tasks|list-hosts)\b",
}


def _looks(call: Invocation) -> bool:
    """It only shows what there is."""
    text = " ".join(call.words)
    shows = _SHOWS.get(call.program)
    return shows is not None and re.search(shows, text) is not None


Found = Iterator[tuple[str, str]]


def _kill(call: Invocation) -> Found:
    words = call.words
    if words[:1] in (("-l",), ("-L",)) or (words[:1] == ("-0",)):
        return
    if call.program in ("pkill", "killall", "skill", "snice", "fuser", "xkill"):
        if call.program != "fuser" or {"-k", "--kill"} & set(words):
            yield "process.kill", "it ends processes by their name"
    elif (
        call.more
        or any(UNKNOWN in word for word in words)
        or any(re.fullmatch(r"-(?:9|KILL|SIGKILL|s)", word) for word in words)
    ):
        yield "process.kill", "it ends processes at once, or such as are not known"
    else:
        yield "process.kill", "it ends processes"


def _service(call: Invocation) -> Found:
    asked = parse(call.words, "-t --type -n -p -u -H -M --state").operands
    verb = asked[1] if call.program == "service" and len(asked) > 1 else asked[0] if asked else ""
    shows = """
    status show cat list-units list-unit-files list-timers is-active is-enabled is-failed list-dependencies list-sockets
    help get-default --status-all
    """
    if verb and verb not in names(shows):
        yield "service", "it starts, stops or changes a service of the machine"


_RULES = Programs[Callable[[Invocation], Found]](
    {
        "kill pkill killall skill snice fuser xkill tskill taskkill": _kill,
        "systemctl service rc-service supervisorctl sv s6-svc initctl pm2 monit": _service,
        (
            "pip pip2 pip3 pipx uv poetry pdm hatch conda mamba micromamba npm pnpm yarn bun cargo gem bundle go"
            " composer twine nuget dotnet mix cpan cpanm luarocks opam cabal stack"
        ): packages.packages,
        (
            "apt apt-get aptitude dpkg yum dnf rpm zypper pacman yay apk emerge snap flatpak brew port nix-env nix"
            " choco scoop winget"
        ): packages.system_packages,
        "docker podman nerdctl docker-compose buildah": away.container,
        "kubectl oc helm helmfile k9s kustomize_apply argocd flux istioctl": away.cluster,
        "terraform tofu terragrunt pulumi cdk sam serverless sls packer": away.infrastructure,
        (
            "aws gcloud az doctl heroku flyctl fly vercel netlify firebase supabase wrangler linode-cli oci ibmcloud"
            " hcloud scw eksctl kops"
        ): away.cloud,
        (
            "psql mysql mariadb sqlite3 sqlcmd mongo mongosh redis-cli valkey-cli cqlsh clickhouse-client influx"
            " cockroach duckdb"
        ): away.database,
        "npx bunx pnpx uvx pipx gh glab": away.remote_code,
    }
)


def _hit(rule: str, why: str, call: Invocation) -> Hit:
    return Hit(rule, Decision.ASK, why, shown(" ".join(call.argv))[:300])


SPOKEN_OF = (
    _ALWAYS.names
    | _RULES.names
    | names("nc ncat netcat socat telnet ftp tftp lftp nmap tcpdump rclone mc azcopy shred srm wipe")
)
"""Programs that a rule speaks of: what no rule asks about them goes by."""
