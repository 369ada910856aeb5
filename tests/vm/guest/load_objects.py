"""In a virtual machine: load every eBPF object by the agent's loader, and print what the kernel says as JSON.

    python -m tests.vm.guest.load_objects DIRECTORY...

A line for each object: ``{"compiler", "object", "error", "instructions": {program: number}}``. The
instructions are those that the verifier has walked through.
"""

import ctypes
import json
import platform
import sys
from ctypes import c_uint32, c_uint64
from pathlib import Path

from fairq_ryu.agent.libbpf import BpfError, BpfObject, load_library

# Tables of operations (struct_ops) are registered by a link from this kernel on.
_STRUCT_OPS_SINCE = (6, 4)
_OPERATIONS = dict.fromkeys(
    (f"{name}.bpf.o" for name in ("dctcp", "d2tcp", "hstcp", "ctrl_reno", "ctrl_cubic")), "control"
)


class _Info(ctypes.Structure):
    """``struct bpf_prog_info`` up to the number of verified instructions (Linux 5.16)."""

    _fields_ = [
        ("before", ctypes.c_uint8 * 208),
        ("recursion_misses", c_uint64),
        ("verified_insns", c_uint32),
        ("attach", c_uint32 * 2),
    ]


def _verified(lib, fd):
    info, size = _Info(), c_uint32(ctypes.sizeof(_Info))
    assert lib.bpf_obj_get_info_by_fd(fd, ctypes.byref(info), ctypes.byref(size)) == 0
    return info.verified_insns


def load(lib, path, kernel):
    """What became of the object at ``path``: a row without its compiler."""
    operations = _OPERATIONS.get(path.name, "")
    row = {"object": path.name.removesuffix(".bpf.o"), "error": "", "instructions": {}}
    if operations and kernel < _STRUCT_OPS_SINCE:
        return {**row, "error": f"needs Linux {_STRUCT_OPS_SINCE[0]}.{_STRUCT_OPS_SINCE[1]}"}
    try:
        loaded = BpfObject(lib, path, {}, operations=operations)
    except BpfError as error:
        return {**row, "error": str(error)}
    try:
        row["instructions"] = {
            name: _verified(lib, loaded.program_fd(name)) for name in loaded._names("program")
        }
        if operations:
            loaded.register(operations)
    except BpfError as error:
        row["error"] = str(error)
    finally:
        loaded.close()
    return row


def main():
    kernel = tuple(int(each) for each in platform.release().split("-")[0].split("+")[0].split(".")[:2])
    lib = load_library()
    for directory in map(Path, sys.argv[1:]):
        objects = sorted(directory.glob("*.bpf.o"))
        if not objects:
            sys.exit(f"{directory} has no objects")
        for path in objects:
            print(json.dumps({"compiler": directory.name, **load(lib, path, kernel)}), flush=True)


if __name__ == "__main__":
    main()
