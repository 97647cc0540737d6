# The headers, the simulated CUDA as sources, the documents, and what CMake, pkg-config and readers of the
# Common Package Specification find them by. All is independent of the architecture. Components: cai_dev,
# cai_doc, and with CAI_BUILD_INSPECT cai_bin. packaging/files.txt is the list of files.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(cai_include_dir "${CMAKE_INSTALL_INCLUDEDIR}/cai")
set(cai_sim_dir "${CMAKE_INSTALL_DATADIR}/cai/sim")
set(cai_package_dir "${CMAKE_INSTALL_DATADIR}/cmake/cai")
set(cai_pc_dir "${CMAKE_INSTALL_DATADIR}/pkgconfig")
set(cai_cps_dir "${CMAKE_INSTALL_DATADIR}/cai/cps")

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/packaging/files.txt")
file(STRINGS packaging/files.txt cai_files)
foreach(file IN LISTS cai_files)
  set(folder "${cai_include_dir}")
  if(file MATCHES "^ext/")
    set(folder "${cai_include_dir}/ext")
  elseif(file MATCHES "^sim/")
    set(folder "${cai_sim_dir}")
  endif()
  install(FILES "${file}" DESTINATION "${folder}" COMPONENT cai_dev)
endforeach()

install(FILES LICENSE README.md CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT cai_doc)
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT cai_doc)
install(DIRECTORY vectors DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT cai_doc PATTERN "__pycache__" EXCLUDE)
install(FILES sim/README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}/sim" COMPONENT cai_doc)
install(DIRECTORY sim/docs DESTINATION "${CMAKE_INSTALL_DOCDIR}/sim" COMPONENT cai_doc)

# CMake. The license goes with the headers, too: a package may take the component cai_dev alone.
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/cai" COMPONENT cai_dev)
target_include_directories(cai INTERFACE "$<INSTALL_INTERFACE:${cai_include_dir}>")
target_include_directories(cai_ext INTERFACE "$<INSTALL_INTERFACE:${cai_include_dir}/ext>")
install(TARGETS cai cai_ext EXPORT caiTargets)
install(EXPORT caiTargets NAMESPACE cai:: DESTINATION "${cai_package_dir}" COMPONENT cai_dev)
configure_package_config_file(cmake/caiConfig.cmake.in "${PROJECT_BINARY_DIR}/caiConfig.cmake"
                              INSTALL_DESTINATION "${cai_package_dir}" PATH_VARS cai_sim_dir)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/caiConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/caiConfig.cmake" "${PROJECT_BINARY_DIR}/caiConfigVersion.cmake"
        DESTINATION "${cai_package_dir}" COMPONENT cai_dev)

# pkg-config, by paths from the .pc file, so that the installation can be moved
set(cai_pc_from "${CMAKE_INSTALL_FULL_DATADIR}/pkgconfig")
file(RELATIVE_PATH cai_pc_include "${cai_pc_from}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}/cai")
file(RELATIVE_PATH cai_pc_sim "${cai_pc_from}" "${CMAKE_INSTALL_FULL_DATADIR}/cai/sim")
foreach(name cai cai-ext)
  configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION "${cai_pc_dir}" COMPONENT cai_dev)
endforeach()

# The Common Package Specification cannot say "compile these sources", so its file has no cai::sim. It stands
# where the specification lets its readers look and where CMake (4.4) does not: CMake would prefer it to the
# package with cai::sim.
set(cai_cps_prefix "@prefix@")
configure_file(cmake/cai.cps.in cai.cps @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/cai.cps" DESTINATION "${cai_cps_dir}" COMPONENT cai_dev)

if(CAI_BUILD_INSPECT)
  install(TARGETS cai_inspect RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT cai_bin)
  if(SKBUILD) # the wheel has the other tool, too, as a module
    install(FILES tools/cai_conform.py tools/cai_conform_consumer.py DESTINATION . COMPONENT cai_bin)
  endif()
endif()
