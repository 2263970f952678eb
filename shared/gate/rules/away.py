"""What acts elsewhere than on files: containers, clusters, clouds, databases, shared sites."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shared.gate.options import names, parse
from shared.gate.shell.found import Invocation
from shared.gate.shell.marks import UNKNOWN

Found = Iterator[tuple[str, str]]


def container(call: Invocation) -> Found:
    asked = parse(
        call.words, "--name -e --env -p -v -w -u -f --file -H --host --context -t --tag -n --network --mount --volume"
    ).operands
    text = " ".join(call.words)
    verbs = list(asked[:3])
    if re.search(
        r"(?:-v|--volume|--mount|--bind)[ =]?\S*(?:(?:^|[ =])[/~]|src=/|source=/|docker\.sock|\$)",
        text.replace("\ue000", "~"),
    ) or ("\ue001" in text and "-v" in text):
        yield "container.host", "it gives a container files of this machine"
    if re.search(
        (
            r"--privileged|--pid[= ]host|--net(?:work)?[= ]host|--ipc[= ]host|--userns[= ]host|--cap-add"
            r"|--security-opt|--device|-H |--host[= ]"
        ),
        text,
    ):
        yield "container.host", "it gives a container rights over this machine"
    if {"rm", "rmi", "prune", "kill", "stop", "restart", "down", "remove", "swarm", "leave"} & set(verbs) and verbs[
        :1
    ] != ["run"]:
        yield "container.removes", "it stops or removes containers, images or volumes"
    if {"push", "login", "logout"} & set(verbs[:1]):
        yield "publish", "it publishes an image, or signs in"


def cluster(call: Invocation) -> Found:
    asked = parse(call.words, "-n --namespace --context -f --filename -l -o -c --kubeconfig --cluster").operands
    verb = asked[0] if asked else ""
    shows = """
    get describe logs version explain api-resources api-versions cluster-info top diff wait options help auth completion
    list ls status history search show template lint dependency env repo pull config build
    """
    if verb == "config" and asked[1:2] and asked[1] not in ("view", "current-context", "get-contexts"):
        yield "cluster", "it changes which cluster is meant"
    elif verb and verb not in names(shows):
        yield "cluster", "it changes what runs in a cluster"
    if verb == "get" and any(word.startswith("secret") for word in asked[1:]):
        yield "secret.read", "it shows secrets of a cluster"


def infrastructure(call: Invocation) -> Found:
    asked = parse(call.words, "-chdir -var -var-file -target -out").operands
    verb = asked[0] if asked else ""
    if verb not in (
        "",
        "init",
        "plan",
        "validate",
        "fmt",
        "show",
        "output",
        "version",
        "providers",
        "graph",
        "get",
        "console",
        "test",
        "preview",
        "stack",
        "about",
        "whoami",
        "workspace",
    ) or (verb == "workspace" and "delete" in asked):
        yield "cloud", "it builds, changes or destroys infrastructure"


def cloud(call: Invocation) -> Found:
    text = " ".join(call.words)
    if re.search((
        r"(?:^|[ -])(?:list|ls|describe|get|show|info|status|version|whoami|help|tail|logs|lookup|head|validate"
        r"|wait|sts get-caller-identity)(?:\b|-)"
    ), text) and not re.search(
        (
            r"get-secret|secrets|get-parameter|decrypt|delete|terminate|remove|destroy|get-credentials"
            r"|access-token|get-password|create|update|put"
        ), text
    ):  # fmt: skip
        return
    yield "cloud", "it changes what runs, or shows secrets, in a cloud"


def database(call: Invocation) -> Found:
    text = " ".join((*call.words, call.stdin or ""))
    if call.fed and call.stdin is None:
        yield "database", "what it would do to a database is not known"
    if re.search(
        (
            r"(?i)\b(?:drop|truncate|delete|update|alter|insert|grant|revoke|create|replace|merge|copy|vacuum"
            r"|reindex|attach|detach|flushall|flushdb|config|shutdown|debug|eval|evalsha|script|slaveof|replicaof"
            r"|migrate|del|unlink|rename|set|load_file|outfile|pg_read_file|lo_import|pg_terminate"
            r"|db\.\w+\.(?:drop|remove|delete|update|insert)|dropDatabase|deleteMany)\b"
        ),
        text,
    ):
        yield "database", "it changes what is in a database"
    elif re.search(
        r"\\(?:!|copy|i|o|g)|\.(?:shell|system|import|output|once|load|read|save|backup|restore)\b|\bsystem\b", text
    ):
        yield "database", "it has a database's client run programs or write files"
    elif re.search(r"(?:^| )(?:-f|--file|<)\b|\.read", text) or (
        UNKNOWN in text and re.search(r"-[ce]\b|--(?:command|execute|eval)", text)
    ):
        yield "database", "what it would do to a database is not known"


def remote_code(call: Invocation) -> Found:
    words = [word for word in call.words if not word.startswith("-")]
    if call.program in ("npx", "bunx", "pnpx", "uvx", "pipx") and any(
        re.search(r"://|^git|^github:", word) for word in words
    ):
        yield "package.elsewhere", "it runs a program from an address that is named here"
    if call.program == "gh":
        if (words[:1] == ["api"] and re.search(r"-X|--method|-f |-F |--field|--input", " ".join(call.words))) or (
            words[1:2]
            and words[1]
            in (
                "delete",
                "merge",
                "close",
                "create",
                "edit",
                "comment",
                "review",
                "set",
                "remove",
                "upload",
                "archive",
                "rename",
                "fork",
                "transfer",
                "enable",
                "disable",
                "run",
                "cancel",
                "rerun",
                "add",
                "token",
                "login",
                "lock",
                "reopen",
                "ready",
                "sync",
            )
            and words[0] != "repo_"
        ):
            yield "network.sends", "it changes something on a shared site, or shows a token"
        if words[:1] in (["secret"], ["auth"], ["ssh-key"], ["gpg-key"], ["extension"], ["alias"]) and words[
            1:2
        ] not in (["list"], ["status"]):
            yield "secret.keys", "it handles secrets, sign-ins or extensions"
