"""Build the kernels with the package; all else is in pyproject.toml."""

import runpy
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

NATIVE = Path("src/cloneproof/runs/native")


class BuildKernels(build_ext):
    """Compile the C++ sources: for each level of the processor, or in a checkout for this machine.

    Without a compiler the package installs, and says what is missing when it samples.
    """

    def build_extension(self, ext: Extension) -> None:
        here = self.editable_mode or self.inplace
        target = NATIVE if here else Path(self.build_lib) / NATIVE.relative_to("src")
        tools = runpy.run_path(str(NATIVE / "build.py"))
        try:
            tools["build"](target.resolve(), only=tools["best_name"]() if here else "")
        except FileNotFoundError as problem:
            print(f"cloneproof is installed without compiled kernels: {problem}", file=sys.stderr)
        except subprocess.CalledProcessError as problem:
            raise SystemExit(f"the kernels do not compile:\n{problem.stderr}") from None

    def get_outputs(self) -> list[str]:
        return []

    def get_output_mapping(self) -> dict[str, str]:
        return {}

    def copy_extensions_to_source(self) -> None:
        """Nothing is copied: in a checkout the kernels are built where the sources are."""


setup(
    ext_modules=[Extension("cloneproof.kernels", [], py_limited_api=True)],
    cmdclass={"build_ext": BuildKernels},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
