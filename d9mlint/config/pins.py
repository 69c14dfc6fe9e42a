"""The versions that a project's own files pin: requirements, pyproject, setup, lock and environment files, Dockerfiles;
where these are silent, its README and the scripts that load modules of a cluster or install releases.

They are looked for in the project's root and in the directories that usually hold them (``config/environment.yml``);
what the root pins goes first. Every reader adds what a text requires; what cannot be read becomes a problem with file
and line.
"""

from __future__ import annotations

import configparser
import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from d9mlint.base.paths import TooLarge, absolute, boundary, is_inside, read_limited
from d9mlint.base.toml import load_toml
from d9mlint.base.yaml_limits import load_yaml
from d9mlint.config.discover import DOCKERFILE, pin_directories, script_directories
from d9mlint.config.markers import holds
from d9mlint.knowledge.versions import DIGITS

LARGEST = 16_000_000
"""Bytes of the largest file that is read. Files that are parsed as a whole are smaller: see ``_WHOLE``."""

LONGEST = 500
"""Characters of the longest requirement; what is longer is none."""

MOST_SEARCHED = 50_000_000
"""Characters that are looked through for the lines of requirements, in all; lines are not known after that."""

# Names under which a library is distributed.
DISTRIBUTIONS = {
    "pytorch": "torch",
    "pytorch-cpu": "torch",
    "pytorch-gpu": "torch",
    "pytorch-nightly": "torch",
    "intel-tensorflow": "tensorflow",
    "tensorflow-base": "tensorflow",
    "tensorflow-cpu": "tensorflow",
    "tensorflow-gpu": "tensorflow",
    "tensorflow-intel": "tensorflow",
    "tensorflow-macos": "tensorflow",
    "tensorflow-rocm": "tensorflow",
    "tf-nightly": "tensorflow",
    "tf-nightly-cpu": "tensorflow",
    "tf-nightly-gpu": "tensorflow",
    "keras-nightly": "keras",
    "pytorch-lightning": "lightning",
    "pyg": "torch_geometric",
    "scikit-learn": "sklearn",
    "warp-lang": "warp",
    "py-xgboost": "xgboost",
    "llama-cpp-python": "llama_cpp",
    "neat-python": "neat",
}
_BUILD = re.compile(r"-(?:cu\d+|cuda\d+x?)$", re.ASCII)
"""What a distribution's name says of the CUDA that it is built for: ``cuml-cu12``, ``cupy-cuda12x``."""
_CPU_BUILDS = frozenset({"pytorch-cpu", "tensorflow-cpu", "tf-nightly-cpu"})
_CPU_INDEX = re.compile(
    r"^(?:[^#\n]*[ \t])?(?:-i|--index-url|--extra-index-url|-f|--find-links)[ =]\S*/whl/cpu\b|^[ \t]*-[ \t]*cpuonly\b",
    re.MULTILINE | re.ASCII,
)
_LINE_OPTION = re.compile(
    r"\s(?:-i|-f|--(?:hash|config-settings|global-option|index-url|extra-index-url|find-links))\b"
)
_NAMES = re.compile(r"[A-Za-z][\w.-]*(?:\s+[A-Za-z][\w.-]*)+", re.ASCII)
_CPU_WHEEL = re.compile(r"(?:%2B|\+)cpu\b", re.ASCII)
_CUDA_LABEL = re.compile(r"\+(cuda)\d[\w.]*$", re.ASCII)
# A build for a release of PyTorch, as those of PyTorch Geometric's libraries: `+pt113cu117`.
_TORCH_LABEL = re.compile(r"\+pt(\d)(\d+)(?:cu\d+|cpu)$", re.ASCII)
"""What a version says of the CUDA that it is built for: ``0.4.13+cuda12.cudnn89``."""
_WHOLE = 1_000_000
_EXPLICIT = "@EXPLICIT"
"""The line before the packages in what `conda list --explicit` writes."""
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9][\w.-]*)", re.ASCII)
"""The name by which the address of sources calls what they are of."""
_PACKAGE = re.compile(r"://\S*/([\w.-]+)-(\d[\w.]*)-([\w.]+?)\.(?:conda|tar\.bz2)(?:#\w*)?$", re.ASCII)
"""The file of a package of conda: its name, version and build."""
_PYTHON = re.compile(r"\s*(?:python-)?(\d+\.\d+(?:\.\d+)*)\s*$", re.ASCII | re.MULTILINE)
_WHEEL = re.compile(r"/([A-Za-z0-9_.]+)-(\d[\w.]*?)(?:%2B|[+-])", re.ASCII)
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[([^\]]*)\])?\s*(.*)", re.DOTALL)
_ASIDE = re.compile(
    r"(?:^|[-_./])(?:docs?|tests?|testing|dev|develop|lint|ci|build|typing)(?:[-_.]|$)", re.IGNORECASE
)
CONDA = "conda::"
IMAGE = "image::"
"""Before the names of packages of conda, and of images, which may be built for a GPU or not."""
_GPUS = re.compile(r"\b(?:GPUs?|CUDA|cuDNN)\b|-gpu\b", re.IGNORECASE)
_CONDA = re.compile(r"^dependencies:[ \t]*(?:#.*)?$", re.MULTILINE)
_CONDA_TOO = re.compile(r"^(?:channels|name|prefix):", re.MULTILINE)
_LOCKED = re.compile(r"""^\s*(?:-\s*)?(name|version)\s*[=:]\s*["']?([^"'\s]+)["']?\s*$""")


class Pin(NamedTuple):
    """A version or a range that a file asks for; ``aside`` when only to test, document or build. ``marker`` says in
    which environments, ``below`` that the file is in a directory of the project (``docker/requirements.txt``).
    ``stated`` when a README says it, and not a command in it that installs the version; ``open_in`` is then the place of
    a requirement of the library that names no version: what is installed can be newer, and ``spec`` is a lower bound."""

    library: str
    spec: str
    file: str
    line: int
    aside: bool = False
    marker: str = ""
    below: bool = False
    stated: bool = False
    open_in: str = ""

    @property
    def exact(self) -> bool:
        """Whether one version is named."""
        return self.spec.startswith("==") and "*" not in self.spec and "," not in self.spec

    @property
    def settled(self) -> bool:
        """Whether one version is named, or all patch releases of one."""
        return self.spec.startswith("==") and "," not in self.spec

    @property
    def kind(self) -> str:
        """What says so: a ``lock``, an ``image``, whose versions requirements replace, ``requirements`` under a usual
        name, a ``variant`` of them, as ``requirements-old.txt``, or a ``readme``, as a script is one: it says what its
        author used."""
        directory, _, name = self.file.rpartition("/")
        if name.endswith(_LOCKS):
            return "lock"
        if DOCKERFILE in name:
            return "image"
        if name.lower().startswith("readme") or name.endswith(_SCRIPTS):
            return "readme"
        usual = name in _USUAL or _OF_REQUIREMENTS.search(directory.rpartition("/")[2]) is not None
        return "requirements" if usual else "variant"

    @property
    def place(self) -> str:
        """Where it stands, for people."""
        return f"{self.file}:{self.line}" if self.line else self.file


class Problem(NamedTuple):
    """A pin file, or a line of one, that could not be understood."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}" if self.line else f"{self.file}: {self.message}"


class Asked(NamedTuple):
    """A library, or an extra of one (``jax[cuda12]``), that is asked for, also where no version is; whether a build for
    the CPU is (``torch==2.3.0+cpu``, or an index of such builds); and the marker under which it is."""

    library: str
    cpu: bool
    marker: str


class Pins(NamedTuple):
    """What the files of a project pin, best source first."""

    pins: tuple[Pin, ...]
    files: tuple[str, ...]
    problems: tuple[Problem, ...]
    asked: tuple[Asked, ...] = ()
    distributions: frozenset[str] = frozenset()
    """What any of the files asks for, by the names under which it is distributed; names of conda begin with ``conda::``,
    those of images with ``image::``."""
    gpus: bool = False
    """Whether a README speaks of GPUs."""
    trained_on_gpus: bool = False
    """Whether it says that the program was trained, or is run, on one."""


def normalized(distribution: str) -> str:
    """The name of a distribution as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", distribution.strip().lower())


def library_name(distribution: str) -> str:
    """The library (its import name, as the knowledge base has it) that a distribution provides."""
    name = _BUILD.sub("", normalized(distribution))
    return DISTRIBUTIONS.get(name, name.replace("-", "_"))


def read_pins(root: Path) -> Pins:
    """Read all pin files in a project's root (and in directories of requirements, such as ``requirements.d``) and in the
    directories that usually hold them."""
    reader = _Reader(root)
    for path, read, below in _pin_files(root):
        reader.below = below
        reader.file(path, read)
    # A lock says what is installed, an exact pin what is meant; ranges come last. Files keep their order.
    found = sorted(
        (_opened(pin, reader.unversioned.get(pin.library, "")) for pin in reader.pins),
        key=lambda pin: (
            pin.kind == "readme",
            pin.aside,
            pin.below,
            not pin.settled,
            pin.kind in ("variant", "image"),
            not pin.exact,
        ),
    )
    return Pins(
        tuple(found),
        tuple(reader.files),
        tuple(reader.problems),
        tuple(reader.asked),
        frozenset(reader.distributions),
        reader.gpus,
        reader.trained_on_gpus,
    )


def _opened(pin: Pin, place: str) -> Pin:
    """A pin where a requirement of its library at some place names no version: the release that a README states is then
    the oldest one."""
    if not place or not pin.stated or not pin.settled:
        return pin
    return pin._replace(spec=f">={pin.spec[2:].removesuffix('.*')}", open_in=place)


def _pin_files(root: Path) -> Iterator[tuple[Path, Callable[[_Reader, str, Path, str], None], bool]]:
    """The pin files of a project, each with what reads it and whether it is below the root."""
    directories = pin_directories(str(root))
    for pattern, read in _READERS:
        for path in sorted(root.glob(pattern)):
            yield path, read, False
        if pattern == _IN_REQUIREMENTS:
            for inside in (Path(d) for d in directories if _OF_REQUIREMENTS.search(Path(d).name)):
                for path in sorted(inside.glob("*.txt")):
                    yield path, read, False
    for directory in directories:
        for pattern, read in (*_READERS[:-2], *_BELOW):
            for path in sorted(Path(directory).glob(pattern)):
                yield path, read, True
    for directory in (str(root), *script_directories(str(root))):
        for path in sorted(Path(directory).glob("*.*")):
            if path.name.endswith(_SCRIPTS):
                yield path, _script, directory != str(root)


class _Reader:
    """What has been read so far; each file once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.pins: list[Pin] = []
        self.files: list[str] = []
        self.problems: list[Problem] = []
        self.asked: dict[Asked, None] = {}
        self.distributions: set[str] = set()
        self.gpus = False
        self.trained_on_gpus = False
        # Whether the file that is read names an index of builds for the CPU.
        self.cpu_index = False
        # Whether the file that is read is in a directory below the root.
        self.below = False
        # Whether the file that is read is a text for people.
        self.prose = False
        # Whether what is read of it is no command.
        self.stated = False
        # Where libraries are required without a version.
        self.unversioned: dict[str, str] = {}
        self._seen: set[Path] = set()
        self._searched = 0
        self.boundary = boundary(absolute(str(root)))

    def line(self, text: str, *needles: str) -> int:
        """The line of the first needle that occurs as a word of its own; 0 where it is not known."""
        self._searched += len(text) * len(needles)
        return _line(text, *needles) if self._searched <= MOST_SEARCHED else 0

    def file(self, path: Path, read: Callable[[_Reader, str, Path, str], None]) -> None:
        """Read one file with a reader, whatever it holds."""
        name = self.name(path)
        why = ""
        try:
            resolved = path.resolve()
            if resolved in self._seen or not path.is_file():
                return
            self._seen.add(resolved)
            if not is_inside(str(resolved), self.boundary):
                why = "is a link that leads out of the project: it is not read"
            else:
                text = _decode(read_limited(str(path), LARGEST if read in (_lock, _pipfile_lock) else _WHOLE))
        except TooLarge:
            why = "too large to be read for pinned versions"
        except (OSError, ValueError, RuntimeError) as error:
            why = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        if why:
            if read is not _perhaps_environment:
                # Any YAML file is looked at, such as one of data: nothing says that it pins versions.
                self.problem(name, 0, why)
            return
        self.files.append(name)
        outer, self.cpu_index = self.cpu_index, _CPU_INDEX.search(text) is not None
        try:
            read(self, name, path, text)
        except RecursionError:
            self.problem(name, 0, "is nested too deeply")
        finally:
            self.cpu_index = outer

    def name(self, path: Path) -> str:
        """A file's name relative to the root, with slashes."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return path.as_posix()

    def problem(self, file: str, line: int, message: str) -> None:
        """Note what could not be read."""
        self.problems.append(Problem(file, line, message))

    def requirement(self, text: str, file: str, line: int, part: str = "") -> None:
        """Add a requirement as pip writes it: ``torch[x]>=1.7,<2; python_version > "3.7"``."""
        text = " ".join(text.split())
        if not text:
            return
        if len(text) > LONGEST:
            self.problem(file, line, f"not a requirement: {text[:60]}")
            return
        if re.fullmatch(r"[\w.-]+=[^=\s]+=[^=\s]+", text.strip()):
            # The output of `conda list --export`.
            _conda(self, file, text, line)
            return
        url = re.match(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*@\s*(\S+)", text)
        body, _, marker = text.partition(" ;" if url or "://" in text else ";")
        if url or "://" in body:
            wheel = _WHEEL.search(url.group(2) if url else body)
            if wheel:
                name = url.group(1) if url else wheel.group(1)
                local = _CPU_WHEEL.match(body, wheel.end(2))
                self.add(name, f"=={wheel.group(2)}{'+cpu' if local else ''}", file, line, part, marker)
            elif (source := url or _EGG.search(body)) is not None:
                # Sources that say of what they are, and not of which release.
                self.add(source.group(1), "", file, line, part, marker)
            return
        found = _REQUIREMENT.fullmatch(body)
        if found is None:
            self.problem(file, line, f"not a requirement: {body.strip()[:60]}")
            return
        self.add(found.group(1), found.group(3).strip().strip("()"), file, line, part, marker)
        if found.group(2) and not self.below and not self.prose:
            for extra in found.group(2).split(","):
                name = f"{library_name(found.group(1))}[{extra.strip().lower()}]"
                self.asked[Asked(name, False, marker.strip())] = None

    def add(
        self,
        distribution: str,
        spec: str,
        file: str,
        line: int,
        part: str = "",
        marker: str = "",
        channel: str = "",
    ) -> None:
        """Add a pin, its range in the form of the knowledge base; no range is no pin.

        ``part`` is the group or extra of the file that it stands in, ``marker`` is judged when the version is asked for.
        """
        plain = normal_spec(" ".join(spec.split())) if len(spec) <= LONGEST else None
        if plain is None:
            self.problem(file, line, f"not a version range: {spec[:60]}")
            return
        library = library_name(distribution)
        self.distributions.add(channel + normalized(distribution))
        cpu = spec.rstrip().endswith("+cpu") or (self.cpu_index and library == "torch")
        cpu = cpu or normalized(distribution) in _CPU_BUILDS
        if not self.below and not self.prose:
            # What another directory is for is not known: its builds for the CPU say nothing about the program.
            self.asked[Asked(library, cpu, marker.strip())] = None
            built = _CUDA_LABEL.search(spec)
            if built is not None:
                self.asked[Asked(f"{library}[{built.group(1)}]", False, marker.strip())] = None
        aside = bool(_ASIDE.search(part) or (file.endswith(".txt") and _ASIDE.search(file)))
        if not plain and not aside and not self.below and not self.prose:
            self.unversioned.setdefault(library, f"{file}:{line}" if line else file)
        if plain:
            self.pins.append(Pin(library, plain, file, line, aside, marker.strip(), self.below, self.stated))
            built = _TORCH_LABEL.search(spec.rstrip())
            if built is not None:
                release = f"=={built.group(1)}.{built.group(2)}.*"
                self.pins.append(Pin("torch", release, file, line, aside, marker.strip(), self.below))


def _decode(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def normal_spec(spec: str) -> str | None:
    """A range of pip, poetry or conda as comma-separated clauses; "" for any version, None when it is none.

    A caret or tilde becomes two bounds. Of alternatives (``||``) the last, usually the newest, is taken.
    """
    text = spec.rpartition("||")[2].rpartition("|")[2].strip()
    clauses: list[str] = []
    for part in re.split(r"\s*,\s*|\s+(?=[<>=!~^])", text):
        found = re.fullmatch(r"(===|==|>=|<=|!=|~=|=|>|<|\^|~)?\s*v?(\d[\w.*+!-]*|\*)", part.strip())
        if found is None:
            if part.strip() in ("", "latest", "any"):
                continue
            return None
        operator, version = found.group(1) or "==", found.group(2)
        if operator in ("==", "===", "="):
            # A local build is a build of that release; in other clauses it counts.
            version = version.partition("+")[0]
        if version == "*":
            continue
        if operator in ("^", "~"):
            clauses += _between(operator, version)
        elif operator in ("=", "==="):
            clauses.append(f"=={version}")
        else:
            clauses.append(operator + version)
    return ",".join(clauses)


def _between(operator: str, version: str) -> list[str]:
    """``^1.7`` is >=1.7,<2 and ``^0.7`` >=0.7,<0.8; ``~1.7.1`` is >=1.7.1,<1.8."""
    numbers = [int(n[:DIGITS]) for n in re.findall(r"\d+", re.split(r"[a-z+-]", version)[0])]
    if operator == "~":
        fixed = 0 if len(numbers) == 1 else 1
    else:
        fixed = next((i for i, n in enumerate(numbers) if n), len(numbers) - 1)
    upper = [*numbers[:fixed], numbers[fixed] + 1]
    return [f">={version}", "<" + ".".join(map(str, upper))]


def _requirements(reader: _Reader, name: str, path: Path, text: str) -> None:
    logical = re.sub(r"\\\r?\n", lambda m: " \0", text)
    number = 1
    for raw in re.split(r"\r\n|\n|\r", logical):
        line = re.sub(r"(^|\s)#.*$", "", raw.replace("\0", "")).strip()
        option = re.match(r"(?:-r|--requirement|-c|--constraint)[ =]*(.+)", line)
        if option:
            other = path.parent / option.group(1).strip()
            if "://" in option.group(1):
                pass
            elif not is_inside(str(other), reader.boundary):
                reader.problem(
                    name, number, f"includes {option.group(1).strip()}, which is outside of the project"
                )
            elif other.is_file():
                reader.file(other, _requirements)
            else:
                reader.problem(name, number, f"includes {option.group(1).strip()}, which does not exist")
        elif (package := _PACKAGE.search(line)) is not None:
            # A line of `conda list --explicit`.
            _conda(reader, name, "=".join(package.groups()), number)
        elif line and not line.startswith(("-", ".", "/")) and line != _EXPLICIT:
            body = _LINE_OPTION.split(line)[0]
            # What `pip install` is given on its command line may stand on one line.
            for one in body.split() if body != line and _NAMES.fullmatch(body) else [body]:
                reader.requirement(one, name, number)
        number += 1 + raw.count("\0")


def _explicit(reader: _Reader, name: str, path: Path, text: str) -> None:
    """A file whose name may be that of a list of conda's packages, read where it says that it is one."""
    if any(line.strip() == _EXPLICIT for line in text.splitlines()):
        _requirements(reader, name, path, text)


def _python(reader: _Reader, name: str, path: Path, text: str) -> None:
    """The release of Python of a project, as tools that install it read it: ``3.7.4``, ``python-3.7.4``."""
    found = _PYTHON.match(text)
    if found is not None:
        reader.add("python", f"=={found[1]}", name, 1)


def _line(text: str, *needles: str) -> int:
    """The line of the first needle that occurs as a word of its own."""
    for needle in needles:
        found = re.search(rf"(?<![\w-]){re.escape(needle)}(?![\w-])", text) if needle else None
        if found:
            return text.count("\n", 0, found.start()) + 1
    return 0


def _toml(reader: _Reader, name: str, text: str) -> dict[str, Any]:
    try:
        return load_toml(text.replace("\r\n", "\n"))
    except ValueError as error:
        where = re.search(r"at line (\d+)", str(error))
        reader.problem(name, int(where.group(1)) if where else 0, f"not valid TOML: {error}")
        return {}


def _pyproject(reader: _Reader, name: str, path: Path, text: str) -> None:
    data = _toml(reader, name, text)
    tool = _dict(data.get("tool"))
    project = _dict(data.get("project"))
    parts: list[tuple[str, Any]] = [("", project.get("dependencies"))]
    parts += _dict(project.get("optional-dependencies")).items()
    parts += _dict(data.get("dependency-groups")).items()
    parts.append(("dev", _dict(tool.get("uv")).get("dev-dependencies")))
    parts += _dict(_dict(tool.get("pdm")).get("dev-dependencies")).items()
    for part, env in _dict(_dict(tool.get("hatch")).get("envs")).items():
        parts += [(part, _dict(env).get(key)) for key in ("dependencies", "extra-dependencies")]
    for part, items in parts:
        for item in items if isinstance(items, list) else []:
            if isinstance(item, str):
                reader.requirement(item, name, reader.line(text, item, item.split(";")[0].strip()), part)
    poetry = _dict(tool.get("poetry"))
    tables = [("", poetry.get("dependencies")), ("dev", poetry.get("dev-dependencies"))]
    tables += [(key, _dict(group).get("dependencies")) for key, group in _dict(poetry.get("group")).items()]
    tables.append(("", _dict(tool.get("pixi")).get("dependencies")))
    for part, table in tables:
        _table(reader, name, text, _dict(table), part)


def _table(reader: _Reader, name: str, text: str, table: Mapping[str, Any], part: str = "") -> None:
    """Dependencies as poetry and pipenv write them: a range, a table with one, or a list of such tables."""
    for key, value in table.items():
        for item in value if isinstance(value, list) else [value]:
            spec = _dict(item).get("version", "") if isinstance(item, dict) else item
            marker = _dict(item).get("markers", "") if isinstance(item, dict) else ""
            if isinstance(spec, str):
                condition = marker if isinstance(marker, str) else ""
                reader.add(key, spec, name, reader.line(text, key), part, condition)


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _pipfile(reader: _Reader, name: str, path: Path, text: str) -> None:
    data = _toml(reader, name, text)
    for part in ("packages", "dev-packages"):
        _table(reader, name, text, _dict(data.get(part)), part)
    for key in ("python_version", "python_full_version"):
        release = _dict(data.get("requires")).get(key)
        if isinstance(release, str):
            reader.add("python", release, name, reader.line(text, key))


def _pipfile_lock(reader: _Reader, name: str, path: Path, text: str) -> None:
    try:
        data = _dict(json.loads(text))
    except ValueError as error:
        reader.problem(name, getattr(error, "lineno", 0), f"not valid JSON: {error}")
        return
    for part in ("default", "develop"):
        for key, value in _dict(data.get(part)).items():
            if isinstance(_dict(value).get("version"), str):
                reader.add(key, value["version"], name, reader.line(text, f'"{key}"'))


def _lock(reader: _Reader, name: str, path: Path, text: str) -> None:
    """Locks of uv, poetry and pdm: ``name`` and ``version`` of each package, in lines of their own.

    Read by line: parsing them as TOML takes seconds, and nothing else in them is needed.
    """
    package = ""
    line = 0
    for number, content in enumerate(text.splitlines(), 1):
        if content.startswith("[["):
            package = ""
        found = _LOCKED.match(content)
        if found is None:
            continue
        if found.group(1) == "name":
            package, line = found.group(2), number
        elif package:
            reader.add(package, f"=={found.group(2)}", name, line)
            package = ""


def _setup_cfg(reader: _Reader, name: str, path: Path, text: str) -> None:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        # Its expressions take time that grows with the square of a run of blanks.
        parser.read_string(re.sub(r"[ \t\f\v]{40,}", " " * 40, text))
    except configparser.Error as error:
        reader.problem(name, getattr(error, "lineno", 0) or 0, f"not valid: {str(error).splitlines()[0]}")
        return
    values = [parser.get("options", "install_requires", fallback="")]
    if parser.has_section("options.extras_require"):
        values += [value for _, value in parser.items("options.extras_require")]
    for value in values:
        for requirement in re.split(r"\n", value):
            reader.requirement(requirement.partition(" #")[0], name, reader.line(text, requirement.strip()))


_RANGE = r"(?:===?|>=|<=|~=|!=|<|>)\s*\d[\w.*+!-]*"
_PINNED = re.compile(rf"[A-Za-z0-9][\w.-]*(?:\[[^\]]*\])?\s*\(?{_RANGE}(?:\s*,\s*{_RANGE})*\)?")
"""A requirement with a version, and nothing but that: texts of messages may begin like one."""


def _setup_py(reader: _Reader, name: str, path: Path, text: str) -> None:
    """Requirements that stand as literals with a version: ``"torch>=1.7"``. The file is not run."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#"):
            continue
        for literal in re.findall(r"""(["'])((?:(?!\1).)*)\1""", line):
            if len(literal[1]) <= LONGEST and _PINNED.fullmatch(literal[1].partition(";")[0].strip()):
                reader.requirement(literal[1], name, number)


def _environment(reader: _Reader, name: str, path: Path, text: str) -> None:
    import yaml

    try:
        data = load_yaml(text)
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        reader.problem(name, mark.line + 1 if mark else 0, "not valid YAML")
        return
    dependencies = _dict(data).get("dependencies")
    for item in dependencies if isinstance(dependencies, list) else []:
        if isinstance(item, str):
            _conda(reader, name, item, reader.line(text, item))
        pip = _dict(item).get("pip")
        for requirement in pip if isinstance(pip, list) else []:
            if isinstance(requirement, str) and not requirement.startswith("-"):
                reader.requirement(requirement, name, reader.line(text, requirement))


def _perhaps_environment(reader: _Reader, name: str, path: Path, text: str) -> None:
    """A file that may be an environment under any name, read where its keys are those of one."""
    if _CONDA.search(text) and _CONDA_TOO.search(text):
        _environment(reader, name, path, text)


def _conda(reader: _Reader, name: str, item: str, line: int) -> None:
    """A requirement as conda writes it: ``channel::pytorch=1.7.1=build``; one = means that series."""
    item = " ".join(item.split())
    found = None if len(item) > LONGEST else re.fullmatch(r"(?:[\w./-]+::)?([\w.-]+)\s*(.*)", item.strip())
    if found is None:
        reader.problem(name, line, f"not a requirement: {item[:60]}")
        return
    spec = re.sub(r"\[.*\]$", "", found.group(2)).strip()
    built = re.fullmatch(r"(=?=[^=\s]*)[= ]\*?(cuda)[\w.*]*", spec)
    if built and not reader.below and not reader.prose:
        reader.asked[Asked(f"{library_name(found.group(1))}[{built.group(2)}]", False, "")] = None
    spec = re.sub(r"^==?\*(?:[= ]\S*)?$", "", spec)
    fuzzy = re.fullmatch(r"=?\s*((?:\d+!)?\d\w*(?:\.\w+)*)(\.?\*)?(?:[= ].*)?", spec)
    if fuzzy:
        spec = f"=={fuzzy.group(1)}" + (".*" if fuzzy.group(1).count(".") < 2 else "")
    elif re.fullmatch(r"=[A-Za-z]\w*(?:=.*)?", spec):
        spec = ""  # a branch: `sacremoses=master=py_0`
    else:
        exact = re.match(r"==\s*(\d[\w.]*)", spec)
        spec = exact.group(0) if exact else re.sub(r"(?<=\d)a0\b", "", spec)
    reader.add(found.group(1), spec, name, line, channel=CONDA)


def _dockerfile(reader: _Reader, name: str, path: Path, text: str) -> None:
    """What an image is made from, and what its commands install with pip in one version."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        first, parts = number, []
        while number < len(lines):
            line = lines[number].strip()
            number += 1
            if line.startswith("#"):
                continue
            parts.append((number, line.removesuffix("\\")))
            if not line.endswith("\\"):
                break
        instruction = parts[0][1].partition(" ")[0].upper() if parts else ""
        if instruction == "FROM":
            image = _IMAGE.search(lines[first])
            if image:
                reader.add(image.group(1), f"=={image.group(2)}", name, first + 1, channel=IMAGE)
            python = _PYTHON_IMAGE.match(lines[first])
            if python:
                reader.add("python", f"=={python.group(1)}", name, first + 1)
            for_gpus = _GPU_IMAGE.search(lines[first])
            if for_gpus:
                _ask_for_extras(reader, {library_name(for_gpus.group(1)): {"cuda"}})
        elif instruction == "RUN":
            _ask_for_extras(reader, _installed(reader, name, parts))


_IMAGE = re.compile(r"\b(?:pytorch|tensorflow)/(pytorch|tensorflow):(\d+(?:\.\d+)+)", re.ASCII)

_PYTHON_IMAGE = re.compile(r"\s*FROM\s+(?:\S*/)?python:(\d+\.\d+(?:\.\d+)*)", re.ASCII | re.IGNORECASE)

_GPU_IMAGE = re.compile(r"\bnvidia/(jax)\b(?!/)", re.ASCII)
"""An image in which a library is built for CUDA: ``nvcr.io/nvidia/jax:24.10-py3``."""


def _installed(reader: _Reader, name: str, parts: list[tuple[int, str]]) -> dict[str, set[str]]:
    """The requirements that a command installs with pip or conda, which may continue over several lines. Gives the extras
    of libraries that it installs with pip in any version, an empty one for a library without."""
    extras: dict[str, set[str]] = {}
    installer = ""
    before = ""
    for number, line in parts:
        for word in line.replace("&&", " && ").replace(";", " ; ").split():
            bare = word.strip("'\"")
            if word in ("&&", "||", ";", "|"):
                installer = ""
            elif before in _INSTALLERS and word in _INSTALLERS[before]:
                installer = before
            elif installer in _PIP and len(bare) <= LONGEST:
                if EXACT.fullmatch(bare):
                    reader.requirement(bare, name, number)
                if extra := _MAY_HAVE_EXTRA.fullmatch(bare):
                    extras.setdefault(library_name(extra.group(1)), set()).add((extra.group(2) or "").lower())
            elif installer in _CONDAS and len(bare) <= LONGEST and _CONDA_RELEASE.fullmatch(bare):
                _conda(reader, name, bare, number)
            before = word
    return extras


_PIP = ("pip", "pip3", "pip2")
_CONDAS = ("conda", "mamba", "micromamba")
_INSTALLERS = {**dict.fromkeys(_PIP, ("install",)), **dict.fromkeys(_CONDAS, ("create", "install"))}
"""The commands that install packages, each with the words after it that do so."""
_CONDA_RELEASE = re.compile(
    r"(?:[\w./-]+::)?[A-Za-z0-9][\w.-]*==?\d\w*(?:\.\w+)*(?:\.?\*)?(?:=[\w.*]+)?", re.ASCII
)
"""A release as a conda command names it: ``tensorflow-gpu=2.2``, ``pytorch::pytorch=1.7.1=py3.8_cuda11``."""
EXACT = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[\w,.-]*\])?==(\d[\w.]*)(?:\+[\w.]*)?", re.ASCII)
"""A requirement of one version: its name and the version, without what says how it is built."""


def extra_of(requirement: str) -> str:
    """A library with the extra that a requirement names, empty for one without: ``jax[cuda12]``."""
    found = _MAY_HAVE_EXTRA.fullmatch(requirement)
    return f"{library_name(found.group(1))}[{found.group(2).lower()}]" if found and found.group(2) else ""


def _readme(reader: _Reader, name: str, path: Path, text: str) -> None:
    """What a README says of versions: items of lists that hold nothing but names with versions, lines of a section about
    requirements that do, lines of other texts that are one release as pip writes it, badges, tables of versions, and
    commands that install one version; a line that is a framework with its version, and a version alone below a heading that
    names its framework; likewise, the only extra of a library. Where these are silent about a framework, sentences that say
    with which release of it the program is used, if all of the text names that one alone."""
    reader.prose = reader.stated = True
    reader.gpus = reader.gpus or _GPUS.search(text) is not None
    reader.trained_on_gpus = reader.trained_on_gpus or _is_trained_on_gpus(text)
    required = False
    headed: re.Match[str] | None = None
    extras: dict[str, set[str]] = {}
    before = len(reader.pins)
    lines = text.splitlines()
    releases = _release_lines(lines)
    for number, framework, release in _table_releases(lines):
        _said(reader, name, number, framework, None, release)
    for number, written in enumerate(lines, 1):
        if len(written) > LONGEST:
            continue
        line = _SPACES.sub(" ", written)
        plain = _plain(line)
        if line.lstrip().startswith("#"):
            required = _SECTION.search(line) is not None
        elif (
            plain
            and headed is not None
            and _VERSION.fullmatch(release := _ITEM.sub("", plain).removeprefix("v"))
        ):
            _said(reader, name, number, headed[1], None, release)
        headed = _OF_VERSION.fullmatch(line) if plain else headed
        for badge in _BADGE.finditer(line):
            _said(reader, name, number, badge.group(1), badge.group(2), badge.group(3))
        item = _ITEM.sub("", plain)
        tested = _TESTED.search(item)
        if tested is not None:
            item = item[tested.end() :]
        if item != plain or required or _states_versions(plain):
            whole = _SAID_RANGE.fullmatch(item)
            for part in [item] if whole is not None else _PARTS.split(item):
                ranged = whole or _SAID_RANGE.fullmatch(part.strip())
                if ranged is not None:
                    _said_range(reader, name, number, *ranged.groups())
                found = _SAID.fullmatch(part.strip()) if ranged is None else None
                if found is not None:
                    _said(reader, name, number, found.group(1), found.group(2), found.group(3))
                with_extra = _EXTRA.fullmatch(part.strip())
                if with_extra is not None:
                    extras.setdefault(library_name(with_extra.group(1)), set()).add(
                        with_extra.group(2).lower()
                    )
        elif number in releases:
            for release in _releases(plain):
                reader.requirement(release, name, number)
        if " install " in plain or " create " in plain:
            reader.stated = False
            for library, named in _installed(reader, name, [(number, plain)]).items():
                extras.setdefault(library, set()).update(named)
            reader.stated = True
    pinned_above = {pin.library for pin in reader.pins[before:]}
    for library, (number, release) in _used_releases(text).items():
        if library not in pinned_above:
            _said(reader, name, number, library, None, release)
    reader.prose = reader.stated = False
    _ask_for_extras(reader, extras)


def _states_versions(plain: str) -> bool:
    """Whether a line is nothing but versions, the first of which it calls one: ``TensorFlow version: 2.4, Python 3.7``."""
    return _OF_FRAMEWORK.match(plain) is not None and all(
        _SAID.fullmatch(part.strip()) for part in _PARTS.split(plain)
    )


def _table_releases(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    """The releases that the tables of a README state, each with its line: in the cell behind a name, ``| keras | 2.2.4 |``,
    of a section about requirements or below a heading such as ``Version``; and in the only row, below names in the
    heading. A cell may have several, ``1.10/1.12``. A table of more rows lists what goes together."""
    required = False
    for number, line in enumerate(lines):
        if line.lstrip().startswith("#"):
            required = _SECTION.search(line) is not None
        if not number or len(line) > LONGEST or not _TABLE.fullmatch(line):
            continue
        heading = _cells(lines[number - 1])
        rows = _rows(lines, number + 1)
        for at, row in rows:
            for column, (name, cell) in enumerate(pairwise(row), 1):
                if required or (column < len(heading) and _VERSIONS.search(heading[column])):
                    yield from ((at, name, release) for release in _cell_releases(cell))
        if len(rows) == 1:
            at, row = rows[0]
            for name, cell in zip(heading, row, strict=False):
                yield from ((at, name, release) for release in _cell_releases(cell))


def _rows(lines: list[str], first: int) -> list[tuple[int, list[str]]]:
    """The rows of a table from a line on, with their numbers."""
    found: list[tuple[int, list[str]]] = []
    for number in range(first, len(lines)):
        line = lines[number]
        if "|" not in line or len(line) > LONGEST:
            break
        found.append((number + 1, _cells(line)))
    return found


def _cells(line: str) -> list[str]:
    return [_plain(_SPACES.sub(" ", cell)) for cell in line.strip().strip("|").split("|")]


def _cell_releases(cell: str) -> list[str]:
    """The releases that a cell of a table has, empty where it has anything else."""
    parts = [part.removeprefix("v") for part in _ALTERNATIVES.split(cell)]
    return parts if all(_VERSION.fullmatch(part) for part in parts) else []


def _script(reader: _Reader, name: str, path: Path, text: str) -> None:
    """What a shell script loads of a cluster's modules, ``module load libs/tensorflow/2.2.0-python-3.8``, and what it
    installs."""
    reader.prose = True
    lines = [
        (number, line)
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) <= LONGEST and not line.lstrip().startswith("#")
    ]
    for number, line in lines:
        loading = _LOADS_MODULES.match(line)
        for word in line[loading.end() :].split() if loading is not None else ():
            found = _MODULE.match(word.strip("'\""))
            if found is not None:
                _said(reader, name, number, found.group(1), None, found.group(2))
    if " install " in text or " create " in text:
        _installed(reader, name, lines)
    reader.prose = False


_SCRIPTS = (".sh", ".slurm", ".sbatch", ".pbs", ".job", ".lsf", ".bash")
"""How the names of scripts end that run a program on a cluster."""
_LOADS_MODULES = re.compile(
    r"\s*(?:module\s+(?:-\S+\s+)*(?:load|add|switch|swap)|ml(?:\s+load)?)\s+", re.ASCII
)
_MODULE = re.compile(r"(?:[\w.+-]+/)*([A-Za-z][A-Za-z_-]*)/v?(\d+(?:\.\d+)+)", re.ASCII)
"""A module of a cluster, by its name and version, whatever is behind that: ``TensorFlow/2.4.1-foss-2020b``."""


def _used_releases(text: str) -> dict[str, tuple[int, str]]:
    """The releases of frameworks, by library, with which the sentences of a README say that its program is used, each with
    its line. A text that names several releases of a framework does not say which one that is."""
    plain = _prose(text)
    named: dict[str, set[str]] = {}
    for found in _FRAMEWORK_RELEASE.finditer(f"{plain}\n{text}"):
        named.setdefault(_framework(found[1]), set()).add(found[2])
    used: dict[str, tuple[int, str]] = {}
    if not named:
        return used
    for number, line in _introduction(text.splitlines()):
        for written in _WRITTEN_FOR.finditer(line):
            before = line[: written.start()]
            library = _framework(written[1] or written[3])
            if len(named.get(library, ())) == 1 and not (
                _OF_OTHERS.search(before) or _OF_CHANGES.search(before)
            ):
                used.setdefault(library, (number, written[2] or written[4]))
    for sentence in _SENTENCE.finditer(plain):
        said = _USED.search(sentence[0])
        if said is None or _OF_OTHERS.search(sentence[0], 0, said.start()):
            continue
        end = said.end()
        while (part := _IN_LIST.match(sentence[0], end)) is not None:
            end = part.end()
            release = _FRAMEWORK_RELEASE.fullmatch(part[1])
            library = _framework(release[1]) if release is not None else ""
            if release is not None and len(named[library]) == 1:
                at = sentence.start() + part.start(1)
                used.setdefault(library, (plain.count("\n", 0, at) + 1, release[2]))
    return used


def _prose(text: str) -> str:
    """The sentences of a README: what has none is a bar."""
    return "\n".join(
        "|" if len(line) > _LONGEST_PARAGRAPH or _NO_SENTENCE.search(line) else _plain(_SPACES.sub(" ", line))
        for line in text.splitlines()
    )


def _is_trained_on_gpus(text: str) -> bool:
    """Whether a sentence says that the program is trained or run on a GPU, and not that it may be."""
    if not _GPU.search(text):
        return False
    sentences = (one[0] for one in _SENTENCE.finditer(_prose(text)))
    return any(_TRAINED_ON.search(one) and not _NOT_SURELY.search(one) for one in sentences)


def _framework(name: str) -> str:
    """The library that a text means by a name."""
    return "tensorflow" if name.lower() == "tf" else library_name(name)


def _introduction(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The title of a README and the sentences before its first section, with their lines."""
    titles = 0
    for number, line in enumerate(lines, 1):
        titles += line.lstrip().startswith("#") or (number > 1 and _UNDERLINE.fullmatch(line) is not None)
        if titles > 1 or _ITEM.match(line) or "|" in line or len(line) > LONGEST:
            return
        for sentence in re.split(r"(?<=[.!?:])\s+", _plain(_SPACES.sub(" ", line))):
            yield number, sentence


def _plain(line: str) -> str:
    """A line of a README without markup."""
    return _MARKUP.sub("", _LINK.sub(r"\1", _BREAK.sub("", line.rstrip()))).strip()


def _releases(plain: str) -> list[str]:
    """The releases that a line names as pip writes them, empty where it holds anything else."""
    parts = [_EQUALS.sub("==", part) for part in _PARTS.split(plain) if part]
    return parts if all(EXACT.fullmatch(part) and not part.endswith(".") for part in parts) else []


def _release_lines(lines: list[str]) -> set[int]:
    """The numbers of the lines of a README that are nothing but releases as pip writes them. Such a line may be part of a
    sentence that goes on below, of a heading, of the cell of a table or of a command that began above: these state
    nothing."""
    found: set[int] = set()
    goes_on = False
    for number in range(len(lines), 0, -1):
        line = lines[number - 1]
        if len(line) > LONGEST:
            goes_on = True
            continue
        if line.endswith("  ") or _BREAK.search(line.rstrip()):
            goes_on = False
        plain = _plain(_SPACES.sub(" ", line))
        if _releases(plain):
            commanded = number > 1 and lines[number - 2].rstrip().endswith("\\")
            if not goes_on and not commanded and not _CELL.search(line):
                found.add(number)
        elif not plain or not (_SAID.fullmatch(plain) or _MAY_HAVE_EXTRA.fullmatch(plain)):
            goes_on = _GOES_ON.match(line.strip()) is not None and not _ITEM.match(line.strip())
    return found


def _ask_for_extras(reader: _Reader, extras: Mapping[str, set[str]]) -> None:
    """What is asked for by the only extra of a library. Several are to be chosen from."""
    for library, named in extras.items():
        if len(named) == 1 and named != {""} and not reader.below:
            reader.asked[Asked(f"{library}[{next(iter(named))}]", False, "")] = None


def _said(reader: _Reader, file: str, line: int, name: str, operator: str | None, version: str) -> None:
    """A version of a framework that a README names: ``PyTorch 1.3`` is any release of that series, ``1.4.0+`` the first."""
    name = _distribution(name)
    if not name:
        return
    least = version.endswith(("+", "%2B")) or operator in (">=", "≥", "%3E%3D", "%E2%89%A5")
    number = re.split(r"\+|%|\.x", version)[0]
    if operator in ("<", "<=", ">", "!="):
        spec = f"{operator}{number}"
    elif least:
        spec = f">={number}"
    else:
        spec = f"=={number}" if number.count(".") > 1 else f"=={number}.*"
    reader.add(name, spec, file, line)


def _said_range(
    reader: _Reader, file: str, line: int, name: str, lowest: str, operator: str | None, last: str
) -> None:
    """A range that a README names: ``PyTorch 1.5.0 to 1.10.2``; ``1.5 - 1.10`` has all patch releases of the last one."""
    name = _distribution(name)
    if not name:
        return
    major, _, minor = last.partition(".")
    above = (
        f"<{major}.{int(minor) + 1}"
        if "." not in minor and operator != "<"
        else f"{'<' if operator == '<' else '<='}{last}"
    )
    reader.add(name, f">={lowest},{above}", file, line)


def _distribution(name: str) -> str:
    """The distribution that a README means by a name; empty where that is not known."""
    name = "tensorflow" if name.lower() == "tf" else name.lower()
    return name if name in DISTRIBUTIONS or name in DISTRIBUTIONS.values() or name == "python" else ""


_SPACES = re.compile("[\\u00a0\\u2000-\\u200a\\u202f\\u205f\\u3000]")
"""Spaces outside of ASCII, such as the no-break space."""
_MARKUP = re.compile(r"[`*_]{1,3}(?=[^\s`*_])|(?<=[^\s`*_])[`*_]{1,3}(?![\w])|^>+|</?\w+>")
_BREAK = re.compile(r"<br\s*/?>$", re.IGNORECASE)
"""What ends a line, as two spaces do, rather than only its text."""
_CELL = re.compile(r"</?t[dh]\b", re.IGNORECASE)
_GOES_ON = re.compile(r"[a-z\d|(]|[=-]{2,}$|</?t[dh]\b")
"""The beginning of a line that goes on with the sentence or the cell above, or that makes a heading of it."""
_TABLE = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)+\|?\s*")
"""What stands between the heading of a table and its rows."""
_VERSIONS = re.compile(r"\b(?:versions?|releases?)\b", re.IGNORECASE)
_OF_VERSION = re.compile(r"\s*#+\s*([A-Za-z]+)\s+(?:versions?|releases?)\s*:?\s*#*", re.ASCII | re.IGNORECASE)
"""A heading above the release of a framework: ``## TensorFlow Version``."""
_OF_FRAMEWORK = re.compile(r"[A-Za-z][\w-]*\s+(?:version|release)\s*:?\s*v?\d", re.ASCII | re.IGNORECASE)
"""The beginning of a line that states the release of a framework: ``TensorFlow version: 2.4``."""
_VERSION = re.compile(r"\d+\.(?:x|\d+(?:\.\d+)*\+?)", re.ASCII | re.IGNORECASE)
_ALTERNATIVES = re.compile(r"\s*(?:[/,]|\bor\b)\s*")
_EQUALS = re.compile(r"\s*==\s*")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_TESTED = re.compile(r"\b(?:tested|developed|implemented|run) (?:with|on|under|using|in)\b", re.IGNORECASE)
_ITEM = re.compile(r"^(?:[-*+]|\d+[.)-])\s+")
_RELEASE_IN_TEXT = (
    r"\b(pytorch|torch|tensorflow(?:-gpu)?|tf|keras)(?:\s+version)?[ \t=-]*\(?v?(\d+\.\d+(?:\.\d+)*)\)?"
)
_FRAMEWORK_RELEASE = re.compile(_RELEASE_IN_TEXT, re.ASCII | re.IGNORECASE)
_WRITTEN_FOR = re.compile(
    rf"\b(?:in|with|using|for|on)\s+{_RELEASE_IN_TEXT}(?![\w.]*\d|\s*(?:\+|or\b|and\b|to\b))"
    rf"|{_RELEASE_IN_TEXT}\s+(?:based\s+)?(?:re-?)?(?:implementation|code|version|port)\b",
    re.ASCII | re.IGNORECASE,
)
"""What a title says of the release for which a program is written: ``NetVLAD in TensorFlow 2.0``."""
_OF_CHANGES = re.compile(
    r"\b(?:bugs?|fix\w*|broken|breaks?|errors?|issues?|problems?|new|features?|chang\w*|introduc\w*|deprecat\w*|remov\w*"
    r"|add(?:s|ed)?|available|migrat\w*|upgrad\w*|convert\w*|moved?|mov(?:es|ing))\b",
    re.IGNORECASE,
)
"""What a sentence says of a release that does not mean the program as it is."""
_UNDERLINE = re.compile(r"\s*(?:={3,}|-{3,})\s*")
_LONGEST_PARAGRAPH = 20_000
_NO_SENTENCE = re.compile(r"^\s*#|\||</?t[dh]\b")
"""A line that is a heading or a row of a table."""
_SENTENCE = re.compile(r"(?:[^.!?|\n。！？；]|\.(?=\w)|\n(?![\s*+-]))+")
_USED = re.compile(
    r"\b(?:us(?:e|es|ed|ing)|requir(?:es?|ing)|needs?|based on|(?:tested|developed|implemented|written|run|runs|built"
    r"|trained|coded|created|works?|done|made) (?:with|on|under|using|in)"
    # German, French, Spanish, Portuguese, Italian and Russian.
    r"|basiert auf|benötigt|verwendet|basée? sur|utilise|nécessite|basad[oa] en|usando|requiere|basead[oa] em|requer"
    r"|basat[oa] su|utilizza|richiede|на основе|использует|требует)\s+"
    # Chinese and Japanese have no spaces.
    r"|(?:基于|基於|使用|采用|採用|需要|依赖|用)\s*",
    re.IGNORECASE,
)
_OF_OTHERS = re.compile(
    r"\b(?:not|never|original|originally|official|authors?|papers?|previous|previously|old|older|earlier|they|their|other"
    r"|others|compar\w*|instead|unlike|if|when|whether|before|since|should|may|might|could|results?|faster|slower)\b|n't\b"
    r"|原|官方|论文|論文|作者|如果|不|未|旧|之前|其他",
    re.IGNORECASE,
)
"""What a sentence says before of which another program, or another time, is meant."""
_GPU = re.compile(r"\bGPUs?\b|\bNVIDIA\b|\bGeForce\b", re.IGNORECASE)
_TRAINED_ON = re.compile(
    r"\b(?:train\w*|run|runs|ran|experiments?)\b[^|]{0,80}\b(?:on|with|using)\b[^|]{0,40}?(?:\bGPUs?\b|\bNVIDIA\b|\bGeForce\b)",
    re.IGNORECASE,
)
_NOT_SURELY = re.compile(
    r"\b(?:CPUs?|TPUs?|if|when|whether|may|might|can|could|should|optional\w*|support\w*|without|no|not|or|their|they|authors?"
    r"|papers?|original\w*)\b|n't\b",
    re.IGNORECASE,
)
"""What a sentence says where the program may run elsewhere too, or a different release is meant."""
_IN_LIST = re.compile(
    r"(?:the\s+)?([A-Za-z][\w+-]*(?:\s+version)?(?:[ \t=-]*\(?v?\d+(?:\.\d+)*\)?)?)"
    r"(?:\s*(?:,\s*(?:and\s+)?|\band\s+|\bwith\s+|&\s*|\+\s+)|\s*[.)]?\s*$"
    r"|\s+(?:on|under|for|as|in|to)\s|\s+(?:framework|librar)\w*|\s*(?!或|及?以|\s)[^\x00-\x7f])",
    re.ASCII | re.IGNORECASE,
)
"""One of the names, with or without a release, that a sentence lists, and what follows it."""
_PARTS = re.compile(r"\s*(?:[,;|]|\band\b)\s*")
_SECTION = re.compile(
    r"require|dependenc|prerequisite|environment|install|setup|getting started|libraries|packages|^\W*versions?\W*$",
    re.IGNORECASE,
)
_SAID = re.compile(
    r"([A-Za-z][\w-]*?)(?:\s+version)?\s*[-:(]?\s*(==|>=|<=|≥|~=|=|<|>)?\s*v?(\d+\.(?:x|\d+(?:\.\d+)*)\+?)(?:[.-]?(?:rc|alpha|beta|a|b|dev|post)\d+)?(?:\s*\(?(?:GPU|CPU)\)?)?\)?(?:\s+(?:on|under|with)\s.*)?[.:]?",
    re.ASCII | re.IGNORECASE,
)
"""A name with a version: ``PyTorch 1.3``, ``tensorflow == 2.3.0``, ``torch>=1.4``, ``keras-3.9.0``; ``2.0.0rc1`` is
taken for 2.0.0."""
_SAID_RANGE = re.compile(
    r"([A-Za-z][\w-]*?)(?:\s+versions?)?\s*[-:(]?\s*(?:from\s+)?(?:>=|≥)?\s*v?(\d+\.\d+(?:\.\d+)*)"
    r"\s*(?:(?:\b(?:up\s+)?to\b|\b(?:through|until)\b|[-–—~])|(?:,|\band\b)?\s*(?=[<≤]))\s*(<=|≤|<)?\s*v?(\d+\.\d+(?:\.\d+)*)\)?[.:]?",
    re.ASCII | re.IGNORECASE,
)
"""A name with the first and the last version: ``PyTorch 1.5.0 to 1.10.2``, ``torch >= 1.5, < 1.11``."""
_EXTRA = re.compile(r"([A-Za-z][\w.-]*)\[([\w-]+)\]", re.ASCII)
"""A library with one of its extras: ``jax[cuda12]``."""
_MAY_HAVE_EXTRA = re.compile(r"([A-Za-z][\w.-]*)(?:\[([\w-]+)\])?(?:[<>=~!]=?[\w.,<>=~!*-]*)?", re.ASCII)
"""The same in a command, with or without an extra and a range."""
_BADGE = re.compile(
    r"img\.shields\.io/badge/([A-Za-z][A-Za-z_]*)-v?(%3E%3D|%E2%89%A5|>=|==|%3D%3D)?v?(\d+\.\d+(?:\.\d+)*(?:\+|%2B)?)-",
    re.ASCII,
)

_IN_REQUIREMENTS = "requirements/*.txt"
_OF_REQUIREMENTS = re.compile(r"(?:^|[-_.])(?:reqs?|requirements?)(?:[-_.]|$)", re.IGNORECASE)
"""Names of directories whose texts are all requirements: ``requirements``, ``requirements.d``, ``pip_reqs``."""
_READERS: tuple[tuple[str, Callable[[_Reader, str, Path, str], None]], ...] = (
    ("uv.lock", _lock),
    ("poetry.lock", _lock),
    ("pdm.lock", _lock),
    ("pylock.toml", _lock),
    ("Pipfile.lock", _pipfile_lock),
    ("pyproject.toml", _pyproject),
    ("requirements.txt", _requirements),
    ("requirements*.txt", _requirements),
    ("*requirement*.txt", _requirements),
    (_IN_REQUIREMENTS, _requirements),
    ("setup.cfg", _setup_cfg),
    ("setup.py", _setup_py),
    ("Pipfile", _pipfile),
    ("environment.yml", _environment),
    ("environment.yaml", _environment),
    ("environment*.y*ml", _environment),
    ("*.y*ml", _perhaps_environment),
    ("*conda*.txt", _explicit),
    ("*env*.txt", _explicit),
    ("*spec*.txt", _explicit),
    ("*packages*.txt", _explicit),
    (".python-version", _python),
    ("runtime.txt", _python),
    ("Dockerfile*", _dockerfile),
    ("[Rr][Ee][Aa][Dd][Mm][Ee]", _readme),
    ("[Rr][Ee][Aa][Dd][Mm][Ee].*", _readme),
)
_BELOW: tuple[tuple[str, Callable[[_Reader, str, Path, str], None]], ...] = (("*.Dockerfile", _dockerfile),)
"""What else is read in a directory below the root: ``docker/gpu.Dockerfile``."""
_USUAL = frozenset(pattern for pattern, _ in _READERS if "*" not in pattern)
_LOCKS = tuple(pattern for pattern, read in _READERS if read in (_lock, _pipfile_lock))


def pinned(pins: tuple[Pin, ...], library: str) -> Iterator[Pin]:
    """The pins of one library whose markers hold, best first."""
    return (pin for pin in pins if pin.library == library and holds(pin.marker))
