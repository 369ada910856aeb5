"""Which programs of the system the source starts, read from the source itself.

Programs are started by `subprocess`, by hosts of Mininet (`cmd`, `popen`) and by functions that pass their
arguments on to one of these; those are found too, so that no call is missed.
"""

import ast
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PLACES = ("fairq_ryu", "mininet_topos", "bench", "packages", "tests")
SUBPROCESS = ("Popen", "call", "check_call", "check_output", "run")
ON_HOSTS = ("cmd", "popen")
# Programs that start the program in one of their later arguments.
GO_BETWEENS = {"env", "nsenter", "nohup", "setpriv", "setsid", "sudo", "unshare"}
SHELLS = {"sh", "bash"}
BEFORE = {"if", "then", "do", "else", "!", "while", "until", "exec", "try", "{", "("}
# Words of shells, and programs that every Debian and Ubuntu has, however small (its essential packages).
ALWAYS = frozenset(
    """
    awk basename bash break builtin case cat cd chmod chroot cmp command compgen continue cp cut
    declare dirname do done du echo elif else env esac eval exec exit export false fi find for function
    grep head hostname id if kill let ln local ls mapfile mkdir mktemp mv paste printf pwd read
    readlink return rm rmdir sed seq set sh sha256sum shift sleep sort source tail tee test then
    timeout touch tr trap true type uname unset until wait while xargs
    """.split()  # noqa: SIM905
)


class Start(NamedTuple):
    """A call that starts a program; ``program`` is empty if the source does not name it."""

    program: str
    where: str


class Wrapper(NamedTuple):
    """A function that starts the program of a parameter: its argument number ``place``."""

    module: str
    name: str
    place: int


class Source:
    """One file, with the definitions that are needed to resolve a name in it."""

    def __init__(self, path):
        self.path = path
        self.name = str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name)
        self.module = self.name.removesuffix(".py").replace("/", ".")
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.parent, self.calls, self.imported = {}, [], {}
        nodes = [self.tree]
        for node in nodes:  # once: this takes most of the time
            children = list(ast.iter_child_nodes(node))
            self.parent |= dict.fromkeys(children, node)
            nodes += children
            if isinstance(node, ast.Call):
                self.calls.append(node)
            elif isinstance(node, ast.ImportFrom):
                self.imported |= {each.asname or each.name: (node.module, each.name) for each in node.names}
        self.own = {node.name for node in self.tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}

    def around(self, node):
        """The functions that enclose a node, the innermost first."""
        while node := self.parent.get(node):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node

    def meant(self, name, node):
        """The values of a name at a node: expressions, and the function of which it is a parameter."""
        for scope in [*self.around(node), self.tree]:
            if scope is not self.tree:
                arguments = scope.args
                places = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
                if arguments.vararg:
                    places.append(arguments.vararg.arg)
                if name in places:
                    return [], (scope, places.index(name))
            found = []
            for each in ast.walk(scope):
                if isinstance(each, ast.Assign | ast.AugAssign):
                    targets = each.targets if isinstance(each, ast.Assign) else [each.target]
                    # Arguments that are appended are no program, unless the value is a list of commands as
                    # well.
                    written = isinstance(each.value, (ast.List, ast.ListComp)) or isinstance(each, ast.Assign)
                    if written and name in [ast.unparse(target) for target in targets]:
                        found.append(each.value)
                elif isinstance(each, (ast.For, ast.comprehension)):
                    found += _of_loop(each, name)
            if found:
                return found, None
        return [], None


def _of_loop(loop, name):
    """The values that a loop over a literal list gives its variable."""
    rows = loop.iter.elts if isinstance(loop.iter, (ast.List, ast.Tuple)) else []
    if isinstance(loop.target, ast.Name):
        return rows if loop.target.id == name else []
    names = [each.id for each in loop.target.elts if isinstance(each, ast.Name)]
    if name not in names:
        return []
    return [row.elts[names.index(name)] for row in rows if isinstance(row, (ast.List, ast.Tuple))]


class Search:
    """All programs that these files start."""

    def __init__(self, paths):
        self.sources = [Source(path) for path in paths]
        self.by_module = {source.module: source for source in self.sources}
        self.wrappers = set()
        # A function may call one that passes its arguments on.
        known = None
        while known != self.wrappers:
            known = set(self.wrappers)
            self.starts = {start for source in self.sources for start in self._starts(source)}

    def _starts(self, source):
        for call in source.calls:
            if (place := self._place(source, call)) is not None:
                words = call.args[place : place + 1] or [k.value for k in call.keywords if k.arg == "args"]
                several = len(call.args) > place + 1 and not isinstance(words[0], (ast.List, ast.Tuple))
                expression = ast.List(call.args[place:]) if several else next(iter(words), None)
                if expression is None:
                    continue
                for program in self._programs(source, expression, call):
                    yield Start(program, f"{source.name}:{call.lineno}")

    def _place(self, source, call):
        """Which argument of a call is the program; None: the call starts none."""
        function = call.func
        if isinstance(function, ast.Attribute):
            value = ast.unparse(function.value)
            if value == "subprocess" and function.attr in SUBPROCESS:
                return 0
            if value == "os" and function.attr.startswith(
                ("exec", "spawn", "posix_spawn", "system", "popen")
            ):
                return 0
            if function.attr in ON_HOSTS:
                return 0
            if value == "lab":
                return self._wrapper("tests.support.lab", f"Lab.{function.attr}")
            module = source.imported.get(value, (None, None))
            return self._wrapper(f"{module[0]}.{module[1]}", function.attr) if module[0] else None
        if not isinstance(function, ast.Name):
            return None
        if function.id in source.own:
            return self._wrapper(source.module, function.id)
        module, name = source.imported.get(function.id, ("", ""))
        return 0 if module == "subprocess" and name in SUBPROCESS else self._wrapper(module, name)

    def _wrapper(self, module, name):
        return next((w.place for w in self.wrappers if (w.module, w.name) == (module, name)), None)

    def _programs(self, source, node, at):
        """The programs that an expression for a command line, or for its first word, may name."""
        again = lambda each: self._programs(source, each, at)  # noqa: E731
        match node:
            case ast.Constant(value=str(text)):
                yield from in_shell(text)
            case ast.JoinedStr(values=parts):
                text = "".join(part.value if isinstance(part, ast.Constant) else "X" for part in parts)
                yield from in_shell(text)
            case ast.List(elts=elements) | ast.Tuple(elts=elements) if elements:
                yield from self._of_words(source, elements, at)
            case ast.Starred(value=value) | ast.Subscript(value=value) | ast.BinOp(left=value, op=ast.Add()):
                yield from again(value)
            case ast.BinOp(op=ast.Div(), right=value):
                yield from again(value)
            case ast.IfExp(body=one, orelse=other):
                yield from again(one)
                yield from again(other)
            case ast.Call(func=ast.Attribute(value=value, attr="split" | "join" | "format")):
                # "; ".join(commands) counts as its parts.
                yield from again(node.args[0] if node.func.attr == "join" else value)
            case ast.Call(func=ast.Name(id="str" | "list" | "tuple" | "find_program"), args=[value]):
                yield from again(value)
            case ast.Call(func=ast.Attribute(attr="with_name"), args=[value]) | ast.ListComp(elt=value):
                yield from again(value)
            case ast.Call(func=ast.Name(id="fairq_program")):
                yield "fairq"
            case ast.Attribute() if ast.unparse(node) == "sys.executable":
                yield "python3"
            case ast.Name(id=name):
                yield from self._of_name(source, name, at, node)
            case _:
                yield ""

    def _of_words(self, source, elements, at):
        first, *rest = elements
        for program in self._programs(source, first, at):
            yield program
            texts = [each.value if isinstance(each, ast.Constant) else "" for each in rest]
            if program in GO_BETWEENS:
                later = [n for n, text in enumerate(texts) if text and not text.startswith("-")]
                if later:
                    yield from self._of_words(source, rest[later[0] :], at)
            elif program in SHELLS and "-c" in texts[:-1]:
                yield from self._programs(source, rest[texts.index("-c") + 1], at)

    def _of_name(self, source, name, at, node):
        expressions, parameter = source.meant(name, at)
        if parameter is not None:
            function, place = parameter
            around = source.parent.get(function)
            in_class = isinstance(around, ast.ClassDef)
            called = f"{around.name}.{function.name}" if in_class else function.name
            if in_class and function.name == "__init__":
                called = around.name
            self.wrappers.add(Wrapper(source.module, called, place - in_class))
            return
        if expressions:
            for each in expressions:
                if not (isinstance(each, ast.Name) and each.id == name):
                    yield from self._programs(source, each, source.tree if each in source.tree.body else at)
            return
        module, original = source.imported.get(name, ("", ""))
        there = self.by_module.get(module)
        if there is None:
            yield ""
            return
        yield from self._of_name(there, original, there.tree, node)


def in_shell(text):
    """The programs that a text for a shell starts, one for each command in it."""
    for line in re.split(r"\n|;|\|\|?|&&|\$\(|(?<![<>&])&(?!\d)", re.sub(r"\\\n", " ", text)):
        words = line.split()
        # The words before a program: `if`, `VARIABLE=value`, and in doctor's script `try NAME`.
        while words and (words[0] in BEFORE or re.fullmatch(r"\w+=\S*", words[0])):
            words = words[2 if words[0] == "try" else 1 :]
        if words and re.fullmatch(r"/?[a-z][\w.+/-]*", words[0]):
            yield words[0].rpartition("/")[2]


def in_script(text):
    """The programs that a script of this repository starts, without its own functions and those of the files
    that scripts read.
    """
    text = re.sub(r"(?m)(^|\s)#.*", " ", text)
    shared = [(ROOT / "scripts" / name).read_text() for name in ("lib.sh", "root.sh")]
    own = set(re.findall(r"(?m)^(\w+)\(\)", "\n".join([text, *shared])))
    text = re.sub(r"'[^']*'", "X", text)
    text = text.replace('"${AS_ROOT[@]}"', " ").replace("run_logged", " ")
    # Quoted text is for users, unless it contains a command.
    text = re.sub(r'"((?:[^"$]|\$(?!\())*)"', "X", text)
    return set(in_shell(text)) - own


def python_files():
    return [path for place in PLACES for path in sorted((ROOT / place).rglob("*.py"))]


def scripts():
    return [*sorted((ROOT / "scripts").glob("*.sh")), ROOT / ".ci/run"]
