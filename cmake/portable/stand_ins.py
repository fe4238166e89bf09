#!/usr/bin/env python3
"""Writes stand-ins for the C and C++ run-time libraries, so that what is linked with them runs on older systems.

    stand_ins.py DIRECTORY COMPILER GLIBC=2.28 GLIBCXX=3.4.24 CXXABI=1.3.11

The linker binds a symbol to the newest version that the library it reads has, and a system without that version
refuses to load the result. But libraries keep all their versions. So each stand-in has the names of the library it is
read from, bound to the newest version within the limits, and no code: only the linker sees it. Names that the limits
leave out are undefined for whoever uses them; later_symbols.cpp defines those that gapless needs.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

LIBRARIES = {
    "c": ["libc.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-*.so.*"],
    "m": ["libm.so.6"],
    "stdc++": ["libstdc++.so.6"],
}
NOT_SHARED = {"c": "libc_nonshared.a"}  # what glibc adds to each library that is linked with it, such as atexit
# glibc 2.34 moved these into libc.so.6, which has their older versions too. Older systems have them in these libraries.
MOVED = {
    "libdl.so.2": re.compile(r"dl"),
    "libpthread.so.0": re.compile(r"_*(pthread|sem)_"),
    "librt.so.1": re.compile(r"(aio|lio|mq|shm|timer)_"),
}
SYMBOL = re.compile(
    r"^\s*\d+: [0-9a-f]+\s+\w+\s+(?P<kind>FUNC|IFUNC|OBJECT|TLS)\s+\w+\s+DEFAULT\s+(?!UND)\w+\s+"
    r"(?P<name>[^@\s]+)(?P<at>@@?)(?P<set>[A-Z]+)_(?P<version>[0-9.]+)\s*$",
    re.MULTILINE,
)
SECTIONS = {
    "FUNC": (".text", "@function"),
    "IFUNC": (".text", "@function"),
    "OBJECT": (".data", "@object"),
    "TLS": ('.tdata,"awT",@progbits', "@tls_object"),
}


def number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def located(compiler: str, name: str) -> Path | None:
    """The library as the compiler finds it; the dynamic linker's name differs by processor."""
    if "*" in name:
        folder = located(compiler, "libc.so.6").parent
        return next(iter(sorted(folder.glob(name))), None)
    command = [compiler, f"-print-file-name={name}"]
    path = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    return path if path.is_absolute() else None


def symbols_of(library: Path, limits: dict[str, tuple[int, ...]]) -> dict[str, tuple[re.Match, bool]]:
    """Name -> its newest version within the limits, and whether it is the newest of all."""
    command = ["readelf", "--wide", "--dyn-syms", library]
    table = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"})
    versions: dict[str, list[re.Match]] = {}
    for match in SYMBOL.finditer(table.stdout):
        versions.setdefault(match["name"], []).append(match)
    chosen = {}
    for name, matches in versions.items():
        allowed = [match for match in matches if number(match["version"]) <= limits.get(match["set"], ())]
        # Without a default version, programs can no longer be linked with it.
        if allowed and any(match["at"] == "@@" for match in matches):
            newest = max(allowed, key=lambda match: number(match["version"]))
            chosen[name] = newest, newest["at"] == "@@"
    return chosen


def write(compiler: str, path: Path, symbols: list[re.Match]) -> None:
    text, nodes = [], {}
    for symbol in symbols:
        section, kind = SECTIONS[symbol["kind"]]
        name = symbol["name"]
        text.append(f".section {section}\n.globl {name}\n.type {name}, {kind}\n{name}: .byte 0\n.size {name}, 1\n")
        nodes.setdefault(f"{symbol['set']}_{symbol['version']}", []).append(name)
    assembly, script = path.with_name(path.name + ".s"), path.with_name(path.name + ".map")
    assembly.write_text("".join(text) + '.section .note.GNU-stack,"",@progbits\n')
    script.write_text(
        "".join(f"{node} {{ global: {' '.join(f'{n};' for n in names)} }};\n" for node, names in nodes.items())
    )
    flags = ["-shared", "-nostdlib", f"-Wl,-soname,{path.name}", f"-Wl,--version-script,{script}"]
    subprocess.run([compiler, *flags, "-o", path, assembly], check=True)


def main() -> None:
    directory, compiler = Path(sys.argv[1]).resolve(), sys.argv[2]
    limits = {name: number(version) for name, version in (word.split("=") for word in sys.argv[3:])}
    directory.mkdir(parents=True, exist_ok=True)
    for library, names in LIBRARIES.items():
        contents: dict[str, list[re.Match]] = {}
        for name in names:
            path = located(compiler, name)
            if path is None:
                continue
            contents.setdefault(path.name, [])
            for symbol, (version, is_newest) in symbols_of(path, limits).items():
                moved = (home for home, pattern in MOVED.items() if not is_newest and pattern.match(symbol))
                contents.setdefault(next(moved, path.name), []).append(version)
        for name, symbols in contents.items():
            write(compiler, directory / name, symbols)
        paths = " ".join(str(directory / name) for name in contents)
        not_shared = located(compiler, NOT_SHARED[library]) if library in NOT_SHARED else None
        (directory / f"lib{library}.so").write_text(f"GROUP ( {not_shared or ''} AS_NEEDED ( {paths} ) )\n")


if __name__ == "__main__":
    main()
