# SPDX-License-Identifier: MIT
"""conan create packaging/conan, in a checkout of cai or in its unpacked archive."""

import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import copy, load


class CaiConan(ConanFile):
    name = "cai"
    description = "The C-side CUDA Array Interface: single-file C99 headers"
    license = "MIT"
    topics = ("cuda", "array", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    no_copy_source = True

    @property
    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        self.version = re.search(r"v(\d+\.\d+\.\d+)", load(self, os.path.join(self._root, "cai.h"))).group(1)

    def export_sources(self):
        files = load(self, os.path.join(self._root, "packaging", "files.txt")).split()
        files += ["CMakeLists.txt", "cmake/*", "sim/CMakeLists.txt", "packaging/files.txt", "LICENSE"]
        for file in files:
            copy(self, file, self._root, self.export_sources_folder)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update(CAI_BUILD_TESTS=False, CAI_BUILD_EXAMPLES=False, CAI_INSTALL=True)
        toolchain.generate()

    def build(self):
        CMake(self).configure()

    def package(self):
        CMake(self).install(component="cai_dev")
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_id(self):
        self.info.clear()

    def package_info(self):
        # find_package(cai) finds cai's own package, with cai::sim.
        self.cpp_info.set_property("cmake_find_mode", "none")
        for name, folder in (("cai", "cai"), ("ext", os.path.join("cai", "ext"))):
            component = self.cpp_info.components[name]
            component.set_property("pkg_config_name", "cai" if name == "cai" else "cai-ext")
            component.includedirs = [os.path.join("include", folder)]
            component.bindirs = component.libdirs = []
        self.cpp_info.components["cai"].builddirs = [os.path.join("share", "cmake", "cai")]
        self.cpp_info.components["ext"].requires = ["cai"]
