#!/usr/bin/env python3
"""The example's training against recorded trajectories, or against the plain replicated program.

usage: compare.py golden CASE --golden DIR --example "COMMAND..."
       compare.py dense CASE --dense "COMMAND..." --example "COMMAND..."

COMMAND starts the program on its ranks: "mpiexec -n 2 path/to/mlp_fashion_mnist".

golden: CASE is sgd_f64, adamw_f32, adam_l2_f64, adamw_clip_accumulate_f64, ... (the files of that name hold the
settings in their heads). The trajectories were made with PyTorch.
- f64: 1e-12 relative in loss and gradient norm at every step and in the parameters afterwards. Only the order of
  sums differs, which was seen to move them by at most 2e-14.
- f32: 1e-5 for as long as both round to the same side wherever an activation is nearly 0 (seen: 6e-7). Where one
  falls the other way, relu lets a gradient through that the other cuts off, and the trajectories part: AdamW does
  so at step 23, where PyTorch's own f32 and f64 part too. Then the losses stay as near as the data allow.
- Parameters: sums relative to the sum of magnitudes (a sum itself may cancel), first and last element relative to
  themselves; these single elements only where the trajectories do not part.

dense: losses and parameters are the same bits. The norm may differ in its last places, since the library's sum of
squares is exact and the plain one is rounded.
"""
import argparse
import pathlib
import re
import shlex
import subprocess
import sys

SKIPPED = 77
STEPS = 40  # of the comparison with the plain program
SETTINGS = {
    "sgd": "optimizer=sgd lr=0.05 momentum=0.9 weight_decay=1e-4",
    "adamw": "optimizer=adamw lr=1e-3 beta1=0.9 beta2=0.999 eps=1e-8 weight_decay=0.01",
    "adam_l2": "optimizer=adam lr=1e-3 beta1=0.9 beta2=0.999 eps=1e-8 weight_decay=0.01",
}
SETTINGS["adamw_clip_accumulate"] = SETTINGS["adamw"] + " accumulate=4 max_grad_norm=0.5"
SETTINGS["adamw_accumulate"] = SETTINGS["adamw"] + " accumulate=3"
SETTINGS["adamw_small_chunks"] = SETTINGS["adamw"] + " chunk_elems=1000"
ONLY_LIBRARY = ("chunk_elems",)  # the plain program has no such thing
# f32: relative tolerance of the loss later on, and the first step that may use it
PARTING = {"sgd_f32": (1e-5, 200), "adamw_f32": (3e-2, 20), "adam_l2_f32": (2e-2, 20)}


def options(case, without=()):
    words = []
    for setting in SETTINGS[case].split():
        if setting.split("=")[0] not in without:
            words += ["-o", setting]
    return words


def run(command, arguments):
    """Lines of the program's output."""
    words = shlex.split(command) + arguments
    print("+", " ".join(words), flush=True)
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode and "dataset-fashion-mnist" in done.stdout:
        print(done.stdout)
        sys.exit(SKIPPED)
    if done.returncode:
        sys.exit(f"{done.stdout}\nexit status {done.returncode}")
    return done.stdout.splitlines()


def steps_of(lines):
    return [(int(m[1]), float(m[2]), float(m[3])) for line in lines
            if (m := re.fullmatch(r"step (\d+) loss (\S+) grad_norm (\S+)", line))]


def params_of(lines):
    return [(int(m[1]), *(float(m[i]) for i in range(2, 6))) for line in lines
            if (m := re.fullmatch(r"param (\d+) sum (\S+) abs (\S+) first (\S+) last (\S+)", line))]


def columns_of(path):
    rows = (line.split() for line in path.read_text().splitlines() if not line.startswith("#"))
    return [(int(row[0]), *map(float, row[1:])) for row in rows]


class Verdict:
    """Collects what is too far off; remembers the largest distance of each kind."""

    def __init__(self):
        self.wrong, self.largest = [], {}

    def near(self, kind, where, value, expected, scale, tolerance):
        distance = abs(value - expected) / scale
        self.largest[kind] = max(self.largest.get(kind, 0), distance)
        if not distance <= tolerance:  # NaN is not near either
            self.wrong.append(f"{where}: {kind} is {value!r}, expected {expected!r} within {tolerance:g}")

    def true(self, what, holds):
        if not holds:
            self.wrong.append(what)

    def end(self):
        print("largest relative distance:", ", ".join(f"{kind} {d:.2g}" for kind, d in self.largest.items()))
        for line in self.wrong[:10]:
            print("FAILED", line)
        sys.exit(1 if self.wrong else 0)


def check_accuracy(verdict, lines):
    last = re.fullmatch(r"test accuracy (0\.\d{4})", lines[-1]) if lines else None
    verdict.true(f"the last line is a test accuracy above 0.7: {lines[-1:]}", last and float(last[1]) > 0.7)


def compare_golden(case, directory, example):
    name, dtype = case.rsplit("_", 1)
    expected = columns_of(directory / f"mlp_{case}.txt")
    final = columns_of(directory / f"mlp_{case}_final.txt")
    batch = "64" if "accumulate" in name else "128"
    lines = run(example, ["--golden-init", "--print-steps", "--print-final", "--dtype", dtype, "--batch", batch,
                          "--steps", str(len(expected))] + options(name))
    steps, params = steps_of(lines), params_of(lines)
    tight = 1e-12 if dtype == "f64" else 1e-5
    later, parting = PARTING.get(case, (tight, len(expected)))
    verdict = Verdict()
    verdict.true("every step is printed once, in order", [s[0] for s in steps] == [e[0] for e in expected])
    verdict.true("every parameter is printed once, in order", [p[0] for p in params] == [f[0] for f in final])
    for (step, loss, norm), (_, loss_expected, norm_expected) in zip(steps, expected):
        together = step < parting
        verdict.near("loss", f"step {step}", loss, loss_expected, loss_expected, tight if together else later)
        if together:
            verdict.near("norm", f"step {step}", norm, norm_expected, norm_expected, tight)
    parts = parting < len(expected)
    for param, expected_param in zip(params, final):
        for kind, value, right in zip(("sum", "abs", "first", "last"), param[1:], expected_param[1:]):
            if kind in ("sum", "abs") or not parts:
                scale = expected_param[2] if kind == "sum" else abs(right)
                verdict.near(kind, f"parameter {param[0]}", value, right, scale, later)
    check_accuracy(verdict, lines)
    verdict.end()


def compare_dense(case, dense, example):
    name, dtype = case.rsplit("_", 1)
    # 130 samples: unequal parts on 3 and on 4 ranks
    common = ["--dtype", dtype, "--batch", "130", "--steps", str(STEPS)]
    plain = run(dense, common + options(name, ONLY_LIBRARY))
    lines = run(example, common + ["--golden-init", "--print-steps", "--print-final"] + options(name))
    verdict = Verdict()
    steps, plain_steps = steps_of(lines), steps_of(plain)
    verdict.true("every step is printed by both", len(steps) == len(plain_steps) == STEPS)
    verdict.true("6 parameters are printed by both", len(params_of(lines)) == len(params_of(plain)) == 6)
    for (step, loss, norm), (_, plain_loss, plain_norm) in zip(steps, plain_steps):
        verdict.near("loss", f"step {step}", loss, plain_loss, plain_loss, 0)
        verdict.near("norm", f"step {step}", norm, plain_norm, plain_norm, 1e-12 if dtype == "f64" else 1e-6)
    for param, plain_param in zip(params_of(lines), params_of(plain)):
        verdict.true(f"parameter {param[0]} is {param[1:]}, expected {plain_param[1:]}", param == plain_param)
    verdict.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("how", choices=("golden", "dense"))
    parser.add_argument("case")
    parser.add_argument("--example", required=True)
    parser.add_argument("--golden", type=pathlib.Path)
    parser.add_argument("--dense")
    arguments = parser.parse_args()
    if arguments.how == "golden":
        compare_golden(arguments.case, arguments.golden, arguments.example)
    else:
        compare_dense(arguments.case, arguments.dense, arguments.example)


if __name__ == "__main__":
    main()
