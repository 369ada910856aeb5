"""Packaging of fairq_ryu; the pinned environment to run it in is in requirements.txt."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent


def read_version() -> str:
    """The version from fairq_ryu/__init__.py, read as text, because an import may need missing packages."""
    found = re.search(
        r'^__version__ = "([^"]+)"$', (ROOT / "fairq_ryu/__init__.py").read_text(), re.MULTILINE
    )
    if found is None:
        raise RuntimeError('fairq_ryu/__init__.py has no line __version__ = "..."')
    return found.group(1)


def own_policies(package: Path = ROOT / "fairq_ryu") -> list[str]:
    """Entry points of our policies: the classes in their folders that have a name. Read as text, too."""
    found = []
    for path in sorted(package.glob("laws/*/policy.py")):
        module = ".".join(path.relative_to(package.parent).with_suffix("").parts)
        for node in ast.parse(path.read_text()).body:
            for line in node.body if isinstance(node, ast.ClassDef) else []:
                match line:
                    case (
                        ast.AnnAssign(target=ast.Name(id="name"), value=ast.Constant(value=str(name)))
                        | ast.Assign(targets=[ast.Name(id="name")], value=ast.Constant(value=str(name)))
                    ):
                        found.append(f"{name} = {module}:{node.name}")
    return found


# What each part imports, and what that imports. c65ryu asks for an eventlet that these Pythons cannot import:
# install requirements.txt, or a part of it, with --no-deps.
AGENT = [
    "c65ryu==5.0.0",  # its OpenFlow codec only, which needs netaddr and six
    "netaddr>=0.8",
    "numpy>=1.24",
    "ovs>=3.1",
    "six>=1.16",
]
COMMANDS = ["rich>=13"]  # tables of `fairq status`, `fairq show` and `fairq doctor`
CONTROLLER = [
    "networkx>=3.2",
    "oslo.config>=9",
    "prometheus_client>=0.22",
    "pydantic>=2.10",
    "Routes>=2.5",
    "WebOb>=1.8",
    'legacy-cgi>=2.6; python_version >= "3.13"',  # WebOb's
]
EXPERIMENTS = ["matplotlib>=3.8"]  # and Mininet, which is no package of PyPI
SIMULATOR = ["ns3>=3.44"]  # its headers and libraries; what the simulator compiles is in the sources only
RECORDS = ["pyarrow>=14"]  # `fairq report --flows`


def read_readme() -> str:
    """The text of README.md; "" if the package does not contain it."""
    readme = ROOT / "README.md"
    return readme.read_text() if readme.exists() else ""


# Set-up and a test import this file for what it reads, without setuptools.
if __name__ == "__main__":
    from setuptools import find_packages, setup

    setup(
        name="fairq_ryu",
        version=read_version(),
        description="FairQ, FairSwitch, IQM, LAS, AC/DC, SED, RSED for Open vSwitch: Ryu app, eBPF agent",
        long_description=read_readme(),
        long_description_content_type="text/markdown",
        license="Apache-2.0",
        license_files=["LICENSE", "LICENSES/*"],
        python_requires=">=3.11",
        # The explicit "." makes an editable install a plain path entry, so packages added later are seen too.
        package_dir={"": "."},
        packages=find_packages(include=["fairq_ryu", "fairq_ryu.*", "mininet_topos", "mininet_topos.*"]),
        package_data={
            "fairq_ryu": ["page/*"],
            "fairq_ryu.cluster": ["fairq.ovsschema"],
            "fairq_ryu.config": ["programs.txt"],
            # What the agent reads when it runs: no sources, so a host without a compiler has all it needs.
            "fairq_ryu.agent": ["bpf/layout.h", "bpf/queue_law_layout.h", "bpf/*.bpf.o"],
            "fairq_ryu.laws": ["*/law.h"],  # it reads the structs in them
            "fairq_ryu.experiments": [
                "scenarios/*",
                "scenarios/papers/*",
                "hostcc/bpf/layout.h",
                "hostcc/bpf/*.bpf.o",
            ],
            "fairq_ryu.experiments.report": ["*.schema.json"],
            "fairq_ryu.experiments.workloads.empirical": ["sizes/*"],
            "mininet_topos": ["delayline/*.c"],  # its program is of one processor, and this package of none
        },
        install_requires=AGENT + COMMANDS,
        extras_require={
            "controller": CONTROLLER,
            "experiments": CONTROLLER + EXPERIMENTS,
            "simulator": CONTROLLER + EXPERIMENTS + SIMULATOR,
            "flows": RECORDS,
        },
        entry_points={
            # The second one goes in the place of Ryu's own script.
            "console_scripts": [
                "fairq = fairq_ryu.cli.main:main",
                "ryu-manager = fairq_ryu.ryu_compat.manager:main",
            ],
            "fairq_ryu.policies": own_policies(),
        },
        classifiers=[
            "Development Status :: 3 - Alpha",
            "Environment :: Console",
            "Intended Audience :: Science/Research",
            "Operating System :: POSIX :: Linux",
            "Programming Language :: Python :: 3",
            "Topic :: System :: Networking",
        ],
    )
