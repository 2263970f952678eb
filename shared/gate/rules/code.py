"""Code in a line: inline programs of interpreters, and what variables and options make a program do."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from shared.gate.options import is_program, names, parse
from shared.gate.paths import path
from shared.gate.shell.found import Invocation
from shared.gate.shell.marks import UNKNOWN, certain, plain, shown
from shared.gate.verdict import Decision, Hit

_PURE = names("""
    json sys math re datetime time string itertools functools collections statistics random decimal fractions textwrap
    uuid hashlib base64 binascii pprint csv calendar copy enum platform keyword unicodedata bisect heapq numbers cmath
    secrets html difflib zoneinfo sysconfig __future__ importlib.metadata
    """)
_BANNED = names("""
    os posix subprocess builtins shutil io codecs socket pathlib importlib import_module modules meta_path path_hooks
    system popen exec eval remove unlink settrace setprofile breakpointhook displayhook excepthook f_globals f_locals
    f_builtins f_back gi_frame cr_frame ag_frame tb_frame gi_code cr_code func_globals Formatter get_field vformat
    attrgetter methodcaller putenv spawn fork kill ctypes pty mmap signal threading multiprocessing runpy code pickle
    marshal shelve
    """)
"""Names by which a module that computes leads to one that acts."""
_VERSION = re.compile(r"\s*import [\w.]+(?:\s*[;\n]\s*print\([\w.]+\.__(?:version|file)__\))?\s*;?\s*")
_ENV_RUNS = re.compile(
    r"^(?:LD_(?:PRELOAD|LIBRARY_PATH|AUDIT)|DYLD_\w+|BASH_ENV|ENV|PROMPT_COMMAND|PS4|SHELLOPTS|BASHOPTS"
    r"|BASH_FUNC_.*|PERL5?OPT|PERL5LIB|PERL5DB|RUBYOPT|RUBYLIB|NODE_OPTIONS|NODE_PATH"
    r"|PYTHON(?:STARTUP|INSPECT|HOME|USERBASE|BREAKPOINT|EXECUTABLE)|GIT_(?:SSH\w*|EXTERNAL_DIFF|PAGER|EDITOR"
    r"|SEQUENCE_EDITOR|PROXY_COMMAND|ASKPASS|EXEC_PATH|TEMPLATE_DIR|CONFIG\w*|DIR|WORK_TREE)|PAGER|MANPAGER"
    r"|EDITOR|VISUAL|BROWSER"
    r"|LESSOPEN|LESSCLOSE|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|MAVEN_OPTS|IFS|SSH_ASKPASS|SUDO_ASKPASS|RSYNC_RSH"
    r"|CVS_RSH|TAR_OPTIONS|GREP_OPTIONS|TERMINFO\w*|HISTFILE|CDPATH|FPATH|GLOBIGNORE|GCONV_PATH|NIGHTSHIFT_\w+"
    r"|http_proxy|https_proxy|ALL_PROXY)$"
)
_TEXT_IN = re.compile(
    r"^(?:GIT_\w+|PAGER|MANPAGER|EDITOR|VISUAL|PROMPT_COMMAND|LESSOPEN|SSH_ASKPASS|RSYNC_RSH|PS4|BROWSER|SUDO_ASKPASS)$"
)
_SPAWNS = re.compile(
    r"(?i)--(?:checkpoint-action|to-command|use-compress-program|rsh-command|info-script|new-volume-script"
    r"|rmt-command|unzip-command|post-file|use-askpass|pre|hostname-bin)\b|^-I$|^-oProxyCommand"
    r"|--use-compress-prog"
)
_WRITES = re.compile(
    r"""open\s*\([^)]*['"][rbt]*[wax+]|(?i:write|append|rename|remove|unlink|link|copy|move|truncate|touch|mkdir|rmtree)"""
    r"|replace\(|shutil|\bos\b|subprocess|exec|eval|system|spawn|popen|compile|getattr|__|chr\(|\\x|decode|fs\b|\bFile\b|\bIO\b"
    r"|>>|> *['\"]"
)
_STRINGS = re.compile(
    r"""'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`([^`]*)`|q[qxw]?\{([^}]*)\}|%x[\[({]([^\])}]*)"""
)


def of_code(language: str, text: str) -> Iterator[Hit]:
    """Inline code is asked about, unless it plainly computes and prints."""
    if language.startswith(("python", "pypy", "ipython")) and _plain_python(text):
        return
    if language in ("awk", "gawk", "mawk", "nawk"):
        if certain(text) and not re.search(
            r"system|getline|\||>|@load|@include|close\s*\(|ENVIRON|/inet|fflush", _without_comparisons(text)
        ):
            return
    elif certain(text) and _plain_other(text):
        return
    yield Hit(
        "code.inline", Decision.ASK, f"it runs {language} code that does more than compute and print", shown(text)[:300]
    )


def texts(language: str, text: str) -> list[str]:
    """What in it may be handed to a shell: each string, and all of one call's strings together."""
    found = [plain(next((g for g in groups if g), "")) for groups in _STRINGS.findall(text)]
    if language.startswith(("python", "pypy", "ipython")):
        found += _python_texts(text)
    lists = re.findall(r"[\[(]\s*((?:['\"][^'\"]*['\"]\s*,\s*)+['\"][^'\"]*['\"])\s*,?\s*[\])]", text)
    found += [" ".join(re.findall(r"['\"]([^'\"]*)['\"]", one)) for one in lists]
    found.append("".join(re.findall(r"['\"]([^'\"]*)['\"]", text)))
    return list(dict.fromkeys(one for one in found if one.strip()))[:40]


def writes(text: str) -> bool:
    """Whether the code may change a file: it has one of the words for it, or is not wholly known."""
    return not certain(text) or _WRITES.search(text) is not None


def of_call(call: Invocation) -> Iterator[Hit]:
    """Variables, options and programs that make a call run something else than it seems to."""
    for name, value in call.env:
        if _ENV_RUNS.match(name) and not (name in ("PAGER", "GIT_PAGER", "MANPAGER") and value in ("", "cat", "less")):
            yield _hit("env.steers", f"the variable {name} makes programs run or load what it names", call)
        elif (
            name == "PATH"
            and not call.remote
            and not value.startswith(("/usr/", "/bin", f"/{UNKNOWN}", "/opt/", UNKNOWN))
        ):
            yield _hit("env.steers", "it looks for programs in another folder first", call)
    if not call.argv:
        return
    if any(_SPAWNS.search(word) for word in call.words) and is_program(
        call.program, "tar bsdtar gtar rsync ssh zip man rg wget"
    ):
        yield _hit("option.runs", "one of its options names a program to run", call)
    if call.program == "zip" and re.search(r"(?:^| )-(?:TT|-unzip-command)", " ".join(call.words)):
        yield _hit("option.runs", "one of its options names a program to run", call)
    if is_program(call.program, "vi vim nvim ex view ed emacs"):
        yield _hit("editor", "an editor runs what it is told, and waits for a person", call)
    if call.program in ("sed", "gsed") and _sed_runs(call):
        yield _hit("option.runs", "its script runs a command", call)
    if call.program in ("source", ".", "enable", "hash", "bind", "complete", "compgen") and _builtin_runs(call):
        yield _hit("shell.source", "it takes commands from a file, or changes what a name means", call)
    yield from _option_runs(call)
    if call.program == "alias" and any("=" in word for word in call.words):
        yield _hit("shell.source", "it changes what a name means", call)
    yield from _unusual_place(call)


def _option_runs(call: Invocation) -> Iterator[Hit]:
    """Programs that an option has run what stands in the line, or elsewhere than it seems."""
    if is_program(call.program, "make gmake") and any(
        re.match(r"SHELL=|\.SHELLFLAGS=|--eval|-f-$", word) or word == "-" for word in call.words
    ):
        yield _hit("option.runs", "it has make run what is written in the line", call)
    if is_program(call.program, "npm pnpm yarn npx") and any(
        re.match(r"--(?:script-shell|node-options|shell)\b", word) for word in call.words
    ):
        yield _hit("option.runs", "one of its options names a program to run", call)
    if call.program == "npm" and call.words[:2] in (("config", "set"), ("set", "script-shell")):
        yield _hit("option.runs", "it changes what npm runs from now on", call)
    if is_program(call.program, "cargo rustc") and any(word.startswith("--config") for word in call.words):
        yield _hit("option.runs", "one of its options names a program to run", call)
    if is_program(call.program, "man") and any(re.match(r"-P|--pager", word) for word in call.words):
        yield _hit("option.runs", "one of its options names a program to run", call)
    runs = is_program(call.program, "go deno bun") and call.words[:1] in (("run",), ("x",))
    if runs and any(re.match(r"(?:https?|npm|jsr):|[\w-]+\.[\w.-]+/.*@", word) for word in call.words[1:]):
        yield _hit("package.elsewhere", "it runs a program from an address that is named here", call)
    if is_program(call.program, "openssl") and names(_OPENSSL) & set(call.words):
        yield _hit("option.runs", "it loads a module, or opens a connection", call)
    if (
        is_program(call.program, "docker podman docker-compose")
        and call.fed
        and "-" in call.words
        and "-f" in call.words
    ):
        yield _hit("container.host", "what it starts is not known", call)


def option_texts(call: Invocation) -> list[str]:
    """Commands for a shell in its options and variables."""
    found = [value for name, value in call.env if _TEXT_IN.match(name)]
    for word in call.words:
        for pattern in (
            r"--checkpoint-action=exec=(.+)",
            r"--to-command=(.+)",
            r"--use-compress-prog\w*=(.+)",
            r"(?i)-?o?ProxyCommand[= ](.+)",
            r"^\+?:?!(.+)",
            r"^:?\s*!(.+)",
        ):
            met = re.match(pattern, word, re.DOTALL)
            if met is not None and not (
                pattern.endswith("!(.+)") and call.program not in ("vi", "vim", "nvim", "ex", "less", "ed")
            ):
                found.append(met[1])
    for option, value in zip(call.words, call.words[1:], strict=False):
        if (
            (option in ("-c", "--cmd") and call.program in ("vi", "vim", "nvim", "ex"))
            or option == "--rsh"
            or (option == "-e" and call.program == "rsync")
        ):
            found.append(value.lstrip(":").removeprefix("!"))
        if option in ("-P", "--pager") and call.program == "man":
            found.append(value)
        if option in ("-I", "--use-compress-program") and is_program(call.program, "tar bsdtar gtar"):
            found.append(value)
    found += [
        word.partition("=")[2] for word in call.words if re.match(r"(?:SHELL|--script-shell|--shell|--eval)=", word)
    ]
    if is_program(call.program, _TALKS):
        text = "\n".join((*call.words, call.stdin or ""))
        found += re.findall(r"(?m)(?:\\!|\.shell|\.system|\bsystem|^!|^\t|:;?)\s*(.+)", text)
    return found


_OPENSSL = "engine -engine s_client s_server -provider-path"
_TALKS = "psql mysql mariadb sqlite3 ed ex vi vim nvim make gmake"
"""Programs whose own language has a word for running another."""


def _unusual_place(call: Invocation) -> Iterator[Hit]:
    program = call.argv[0]
    if "/" not in program:
        return
    place = path(program, call.cwd)
    if place.absolute and not re.match(
        (
            r"/(?:usr/(?:local/)?s?bin|s?bin|usr/lib|usr/libexec|opt/homebrew/bin|opt/[\w.-]+/bin|lib(?:64)?"
            r"|nix/store/[\w.+-]+/bin)/"
        ),
        place.text,
    ):
        yield _hit("program.elsewhere", f"it runs {shown(program)}, which is no program of the system", call)
    elif not place.absolute and not place.inside:
        yield _hit("program.elsewhere", f"it runs {shown(program)}, outside the workspace", call)


def _builtin_runs(call: Invocation) -> bool:
    if call.program in ("source", "."):
        first = call.words[0] if call.words else ""
        return not re.search(
            r"(?:^|/)(?:activate|\.?venv/bin/activate|nvm\.sh|conda\.sh|setup\.(?:ba)?sh|cargo/env)$", first
        )
    return call.program != "hash" or "-p" in call.words


def _sed_runs(call: Invocation) -> bool:
    asked = parse(call.words, "-e --expression -f --file")
    scripts = [value for option, value in asked.values if option in ("-e", "--expression")] or list(asked.operands[:1])
    for script in scripts:
        if re.search(r"(?:^|[;{}\n]|\d|/|\$)\s*e(?:\s|$)", script) or re.search(
            r"^.*s(.).*\1.*\1[gipmI0-9]*e[gipmI0-9w]*(?:$|[;}\n ])", script
        ):
            return True
        if not certain(script):
            return False
    return any(option in ("-f", "--file") for option, _ in asked.values)


def _without_comparisons(text: str) -> str:
    return re.sub(r"[\w)\]$]\s*>=?\s*[\d\w$(]|\|\||\"[^\"]*\"|/[^/]*/", " ", text)


def _plain_other(text: str) -> bool:
    """A single print of constants and versions, or a plain substitution."""
    if re.search(
        (
            r"[`\\]|\[|exec|spawn|child|fs|eval|import|open|system|unlink|File|IO|Dir|kill|fork|http|net|socket"
            r"|write|delete|rm"
        ),
        text,
    ):
        return bool(
            re.fullmatch(r"\s*(?:console\.log|print|puts|echo)\s*\(?\s*['\"][\w .,:!?%-]*['\"]\s*\)?\s*;?\s*", text)
        )
    return bool(
        re.fullmatch(r"\s*(?:console\.log|print|puts|p|echo|say|cat)\b[\w\s.()+*/%'\",:;$#{}!?=<>-]*", text)
        or re.fullmatch(r"\s*(?:s|tr|y)/[^/@$`\\]*/[^/@$`\\]*/[gims]*;?\s*(?:print;?)?\s*", text)
        or re.fullmatch(
            r"\s*(?:process\.(?:version|platform|arch)|RUBY_VERSION|phpversion\(\)|[\d\s.+*/()-]+)\s*;?\s*", text
        )
        or re.fullmatch(r"\s*(?:console\.log\()?require\(['\"]\./package\.json['\"]\)\.[\w.]+\)?;?\s*", text)
    )


def _plain_python(text: str) -> bool:
    if _VERSION.fullmatch(text):
        return True
    tree = _parsed(text)
    return tree is not None and certain(text) and all(map(_harmless, ast.walk(tree)))


def _parsed(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _harmless(node: ast.AST) -> bool:
    match node:
        case ast.Import(names):
            return all(name.name in _PURE or name.name.partition(".")[0] in _PURE for name in names)
        case ast.ImportFrom(module, names):
            return (module or "") in _PURE and not any(
                n.name == "*" or n.name in _BANNED or n.name[0] == "_" for n in names
            )
        case ast.Name(name):
            return (
                name not in _BUILT_IN and name not in _BANNED and (not name.startswith("__") or name == "__version__")
            )
        case ast.Attribute(attr=name, ctx=use):
            return name not in _BANNED and (name[0] != "_" or name == "__version__") and isinstance(use, ast.Load)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Global() | ast.Nonlocal() | ast.Delete():
            return False
        case ast.With() | ast.AsyncWith() | ast.While() | ast.Await():
            return False
        case _:
            return True


_BUILT_IN = names(
    "eval exec compile open getattr setattr delattr globals locals vars dir breakpoint memoryview object super"
)


def _python_texts(text: str) -> list[str]:
    tree = _parsed(text)
    if tree is None:
        return []
    found = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    joined = [_folded(node) for node in ast.walk(tree) if isinstance(node, ast.BinOp | ast.JoinedStr)]
    return [*found, *(one for one in joined if one)]


def _folded(node: ast.AST) -> str | None:
    match node:
        case ast.Constant(value) if isinstance(value, str):
            return value
        case ast.BinOp(left, ast.Add(), right):
            first, second = _folded(left), _folded(right)
            return None if first is None or second is None else first + second
        case ast.JoinedStr(values):
            return "".join(_folded(value) or "" for value in values)
        case _:
            return None


def _hit(rule: str, why: str, call: Invocation) -> Hit:
    return Hit(rule, Decision.ASK, why, shown(" ".join(call.argv))[:300])
