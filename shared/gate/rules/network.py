"""What goes out, and what comes in and is run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shared.gate.options import is_program, names, parse
from shared.gate.shell.found import Invocation
from shared.gate.shell.marks import UNKNOWN, shown
from shared.gate.verdict import Decision, Hit

_SENDS = names(
    "-d -F -T --data --data-binary --data-raw --data-urlencode --data-ascii --form --form-string --upload-file"
    " --json -X --request"
    " --post-data --post-file --body-data --body-file --method -K --config -x --proxy --proxy-header"
    " --preproxy --socks5"
    " --resolve --connect-to --unix-socket --abstract-unix-socket --interface --ssl-key --cert --key -E"
    " --netrc-file --aws-sigv4 -u --user"
)
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_LOCAL = re.compile(r"(?:https?://)?(?:localhost|127\.0\.0\.1|\[::1\]|0\.0\.0\.0)(?=[:/?]|$)")
_INSIDE = re.compile(
    (
        r"(?:https?://)?(?:169\.254\.|metadata\.|\[?fd00:ec2|100\.100\.100\.200|10\.\d|192\.168\.|172\.(?:1[6-9]"
        r"|2\d|3[01])\.|0x[0-9a-f]{8}|\d{8,10}(?:[/:]|$))"
    ),
    re.IGNORECASE,
)
_RAW = (
    "nc ncat netcat socat telnet ftp tftp sftp lftp ncftp rsh rlogin rexec rcp mosh autossh ngrok cloudflared"
    " localtunnel lt frpc chisel bore croc wormhole magic-wormhole transfer tor i2prouter wg wg-quick openvpn"
    " iodine dnscat2 dns2tcp nmap masscan zmap arp-scan hping3 tcpdump tshark ettercap bettercap aircrack-ng"
    " sqlmap nikto gobuster ffuf wfuzz msfconsole msfvenom mail sendmail mailx mutt swaks"
)


def hits(call: Invocation) -> Iterator[Hit]:
    if not call.argv:
        return
    name = call.program
    if is_program(name, "curl wget http https xh aria2c axel httpie curlie"):
        yield from _fetch(call)
    elif is_program(name, _RAW):
        yield _hit("network.raw", f"{shown(name)} opens connections of its own", call)
    elif is_program(name, "ssh scp sftp rsync rclone s3cmd mc gsutil azcopy"):
        if not (name == "rsync" and not any(re.search(r"::|^[\w.@-]+:|^rsync://", w) for w in call.words)) and not {
            "-V",
            "--version",
        } & set(call.words):
            yield _hit("network.remote", f"{shown(name)} acts on another machine, or sends files to it", call)
    elif is_program(name, "dig nslookup host ping drill whois traceroute") and any(
        UNKNOWN in w or len(w) > 100 for w in call.words
    ):
        yield _hit("network.sends", "the name that it asks for is not known, and names are told to others", call)


def _fetch(call: Invocation) -> Iterator[Hit]:
    words = call.words
    asked = parse(
        words,
        " ".join(
            _SENDS
            | {
                "-o",
                "--output",
                "-H",
                "--header",
                "-A",
                "--user-agent",
                "-w",
                "-m",
                "--max-time",
                "-b",
                "-e",
                "-O",
                "-P",
                "--retry",
                "-c",
                "--connect-timeout",
            }
        ),
    )
    local = bool(asked.operands) and all(_LOCAL.match(word) for word in asked.operands)
    sends = [
        option
        for option, _ in asked.values
        if option in _SENDS or option[:2] in ("-d", "-F", "-T", "-X", "-K", "-x", "-u")
    ]
    method = (asked.value("-X", "--request", "--method") or "").upper()
    if method in _SAFE_METHODS:
        sends = [option for option in sends if option not in ("-X", "--request", "--method")]
    if method == "DELETE" or (sends and not local):
        yield _hit("network.sends", "it sends data, or asks for a change, elsewhere", call)
    if (
        is_program(call.program, "http https xh httpie")
        and any(re.match(r"POST|PUT|PATCH|DELETE|[\w-]+:?=", w) for w in asked.operands)
        and not local
    ):
        yield _hit("network.sends", "it sends data, or asks for a change, elsewhere", call)
    if any(UNKNOWN in word for word in words if not word.startswith("-")) or call.more:
        yield _hit("network.sends", "what it asks for holds what is not known, and is told to others", call)
    if any(_INSIDE.match(word) for word in asked.operands):
        yield _hit("network.inside", "it asks an address of the inner network, or of the machine's host", call)
    if any(
        re.match(r"(?:file|gopher|dict|ldap|smb|tftp|ftp|scp|sftp|telnet):", word, re.IGNORECASE)
        for word in asked.operands
    ):
        yield _hit("network.raw", "it uses a protocol other than http", call)


def _hit(rule: str, why: str, call: Invocation) -> Hit:
    return Hit(rule, Decision.ASK, why, shown(" ".join(call.argv))[:300])
