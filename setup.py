"""Build the kernels with the package; all else is in pyproject.toml."""

import runpy
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

NATIVE = Path("src/cloneproof/engines/monte_carlo/native")


class BuildKernels(build_ext):
    """Compile the C++ sources for each level of the processor; without a compiler the package installs and says so."""

    def build_extension(self, ext: Extension) -> None:
        target = NATIVE if self.editable_mode or self.inplace else Path(self.build_lib) / NATIVE.relative_to("src")
        runpy.run_path(str(NATIVE / "build.py"))["build"](target.resolve())

    def get_outputs(self) -> list[str]:
        return []

    def get_output_mapping(self) -> dict[str, str]:
        return {}

    def copy_extensions_to_source(self) -> None:
        pass


setup(
    ext_modules=[Extension("cloneproof.kernels", [], py_limited_api=True, optional=True)],
    cmdclass={"build_ext": BuildKernels},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
