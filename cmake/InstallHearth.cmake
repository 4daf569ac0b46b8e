# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where, and the CMake packages `hearth` (targets hearth::hearth and
# hearth::hearth_llm) and `neuralnetworks`. All that is installed may be moved together.
#
# With HEARTH_SYSTEM_LAYOUT the loader finds the libraries that others link by itself, those that only
# ours load lie in a folder of their own, and the Python package is where Debian's Python looks.
include(CMakePackageConfigHelpers)

foreach(folder IN ITEMS hearth android)
  if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/include/${folder})
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/${folder}
            DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h PATTERN *.hpp)
  endif()
endforeach()

# Manifests of vendors' delegates, for whoever has the library.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/share/hearth/vendors DESTINATION share/hearth)

# Libraries find each other in their own folder, programs find them from theirs.
file(RELATIVE_PATH hearth_lib_to_private
     ${CMAKE_INSTALL_FULL_LIBDIR} ${CMAKE_INSTALL_PREFIX}/${HEARTH_INSTALL_PRIVATE_LIBDIR})
file(RELATIVE_PATH hearth_bin_to_private
     ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_PREFIX}/${HEARTH_INSTALL_PRIVATE_LIBDIR})
if(HEARTH_SYSTEM_LAYOUT)
  set(hearth_pc_prefix ${CMAKE_INSTALL_PREFIX})
else()
  file(RELATIVE_PATH hearth_pc_prefix
       ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  string(PREPEND hearth_pc_prefix "\${pcfiledir}/")
endif()
set(hearth_private_rpath $ORIGIN)
if(hearth_lib_to_private)
  string(APPEND hearth_private_rpath /${hearth_lib_to_private})
endif()

# hearth_install_library(TARGET NAMESPACE): a library that others link, with its CMake package and its
# file for pkg-config.
function(hearth_install_library target namespace)
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/${target})
  install(TARGETS ${target} EXPORT ${target}Targets
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
          INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT ${target}Targets NAMESPACE ${namespace} DESTINATION ${package})
  configure_package_config_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${target}Config.cmake.in
                                ${CMAKE_BINARY_DIR}/generated/${target}Config.cmake
                                INSTALL_DESTINATION ${package})
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/${target}ConfigVersion.cmake
                                   COMPATIBILITY SameMajorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/generated/${target}Config.cmake
                ${CMAKE_BINARY_DIR}/generated/${target}ConfigVersion.cmake
          DESTINATION ${package})
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${target}.pc.in
                 ${CMAKE_BINARY_DIR}/generated/${target}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/generated/${target}.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

if(TARGET hearth_tool)
  set_target_properties(hearth_tool PROPERTIES INSTALL_RPATH $ORIGIN/${hearth_bin_to_private})
  install(TARGETS hearth_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

if(TARGET hearth)
  set_target_properties(hearth PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    INSTALL_RPATH ${hearth_private_rpath})
  hearth_install_library(hearth hearth::)
endif()

# With the headers and the CMake package of libhearth.so: hearth::hearth_llm.
if(TARGET hearth_llm_shared)
  set_target_properties(hearth_llm_shared PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  if(NOT HEARTH_SYSTEM_LAYOUT)
    set_target_properties(hearth_llm_shared PROPERTIES INSTALL_RPATH $ORIGIN)
  endif()
  install(TARGETS hearth_llm_shared EXPORT hearthTargets
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
          INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/hearth_llm.pc.in
                 ${CMAKE_BINARY_DIR}/generated/hearth_llm.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/generated/hearth_llm.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

# What programs name to LiteRT, so it has no version in its name either.
if(TARGET hearth_delegate)
  if(NOT HEARTH_SYSTEM_LAYOUT)
    set_target_properties(hearth_delegate PROPERTIES INSTALL_RPATH $ORIGIN)
  endif()
  install(TARGETS hearth_delegate LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

# libneuralnetworks.so has no version in its name, as on Android: what looks for it by dlopen() must
# find it.
if(TARGET neuralnetworks)
  if(NOT HEARTH_SYSTEM_LAYOUT)
    set_target_properties(neuralnetworks PROPERTIES INSTALL_RPATH $ORIGIN)
  endif()
  hearth_install_library(neuralnetworks "")
endif()

# Programs get TensorFlow Lite's C library from here only if they, or who starts them, name this folder.
if(TARGET tensorflowlite_c)
  set(tflite_folder ${CMAKE_INSTALL_LIBDIR}/hearth-tflite)
  if(NOT HEARTH_SYSTEM_LAYOUT)
    set_target_properties(tensorflowlite_c PROPERTIES INSTALL_RPATH $ORIGIN/..)
  endif()
  install(TARGETS tensorflowlite_c LIBRARY DESTINATION ${tflite_folder})
endif()

# A driver that programs load where its manifest lies (src/drivers/vulkan).
if(TARGET hearth_driver_vulkan_module)
  set(drivers_folder ${CMAKE_INSTALL_LIBDIR}/hearth/drivers)
  file(RELATIVE_PATH drivers_to_private /${drivers_folder} /${HEARTH_INSTALL_PRIVATE_LIBDIR})
  set_target_properties(hearth_driver_vulkan_module PROPERTIES INSTALL_RPATH $ORIGIN/${drivers_to_private})
  install(TARGETS hearth_driver_vulkan_module LIBRARY DESTINATION ${drivers_folder})
endif()

if(TARGET hearth_python AND HEARTH_SYSTEM_LAYOUT)
  set(python_package lib/python3/dist-packages/hearth)
  install(TARGETS hearth_python LIBRARY DESTINATION ${python_package})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/python/hearth/ DESTINATION ${python_package}
          FILES_MATCHING PATTERN *.py PATTERN *.pyi PATTERN py.typed
          PATTERN __pycache__ EXCLUDE)
endif()

# For tools/dev/wheels.py: in a wheel, bin and lib are folders of the package.
if(TARGET hearth_python AND HEARTH_SELF_CONTAINED)
  set_target_properties(hearth_python hearth_python311 PROPERTIES INSTALL_RPATH $ORIGIN/lib)
  install(TARGETS hearth_python hearth_python311 LIBRARY DESTINATION python)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/python/hearth/ DESTINATION python
          FILES_MATCHING PATTERN *.py PATTERN *.pyi PATTERN py.typed
          PATTERN __pycache__ EXCLUDE)
endif()
