#!/usr/bin/env python3
"""A file of src/<room>/ includes only from its own room and the rooms below it.

usage: check_includes.py <src folder> | --self-test
"""
import pathlib
import re
import sys

# From the ground up; rooms in one entry stand on the same floor and do not see each other.
FLOORS = [["base"], ["kernels"], ["memory"], ["collectives"], ["chunks"], ["placement"],
          ["training", "checkpoint"], ["capi"]]
FLOOR_OF = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}
MAY_INCLUDE_MPI = {"collectives", "capi"}
PUBLIC_HEADERS = {"gemini.h", "gemini_version.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def check_line(room, line, neighbours):
    """What is wrong with one line of a file in `room`, or None. `neighbours`: file names of that room."""
    match = INCLUDE.match(line)
    if not match:
        return None
    bracket, path = match.groups()
    if path == "mpi.h":
        return None if room in MAY_INCLUDE_MPI else f"{room} includes <mpi.h>"
    other = path.split("/")[0]
    if bracket == "<":
        return f'own header in <>: write "{path}"' if other in FLOOR_OF and "/" in path else None
    if ".." in path:
        return f'"{path}": write the path from src/'
    if "/" not in path:
        known = path in PUBLIC_HEADERS or path in neighbours
        return None if known else f'"{path}" is neither in {room} nor a public header'
    if other not in FLOOR_OF:
        return f'"{path}" is in no room'
    if other != room and FLOOR_OF[other] >= FLOOR_OF[room]:
        return f'{room} includes "{path}", which stands above it or beside it'
    return None


def check_tree(src):
    findings = []
    files = sorted(f for f in src.rglob("*") if f.suffix in (".c", ".h", ".cpp", ".hpp"))
    for file in files:
        room = file.relative_to(src).parts[0]
        if room not in FLOOR_OF:
            findings.append(f"{file}: {room} is no room")
            continue
        neighbours = {f.name for f in file.parent.iterdir()}
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            wrong = check_line(room, line, neighbours)
            if wrong:
                findings.append(f"{file}:{number}: {wrong}")
    return len(files), findings


def self_test():
    bad = [("base", '#include "kernels/kernels.hpp"'), ("chunks", '#include "training/step.hpp"'),
           ("placement", "#include <mpi.h>"), ("memory", "  #  include <mpi.h>"),
           ("training", '#include "checkpoint/writer.hpp"'), ("base", '#include "../capi/guard.hpp"'),
           ("base", '#include "absent.hpp"'), ("base", '#include "elsewhere/a.hpp"'),
           ("capi", "#include <base/error.hpp>")]
    good = [("chunks", '#include "base/error.hpp"'), ("chunks", '#include "chunks/layout.hpp"'),
            ("capi", "#include <mpi.h>"), ("collectives", "#include <mpi.h>"), ("base", "#include <vector>"),
            ("base", '#include "error.hpp"'), ("base", '#include "gemini.h"'), ("base", "int include = 1;")]
    findings = [f"not found: {case}" for case in bad if not check_line(*case, {"error.hpp"})]
    findings += [f"false alarm: {case}" for case in good if check_line(*case, {"error.hpp"})]
    return len(bad) + len(good), findings


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    checked, findings = self_test() if sys.argv[1] == "--self-test" else check_tree(pathlib.Path(sys.argv[1]))
    print("\n".join(findings))
    print(f"{checked} checked, {len(findings)} findings")
    sys.exit(1 if findings or not checked else 0)


if __name__ == "__main__":
    main()
