# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where, and the CMake package `hearth` with the target hearth::hearth.
include(CMakePackageConfigHelpers)

foreach(folder IN ITEMS hearth android)
  if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/include/${folder})
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/${folder}
            DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h PATTERN *.hpp)
  endif()
endforeach()

# Libraries find each other in their own folder, programs find them from theirs.
file(RELATIVE_PATH hearth_bin_to_lib
     ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})

if(TARGET hearth_tool)
  set_target_properties(hearth_tool PROPERTIES INSTALL_RPATH $ORIGIN/${hearth_bin_to_lib})
  install(TARGETS hearth_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

if(TARGET hearth)
  set_target_properties(hearth PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} INSTALL_RPATH $ORIGIN)
  set(hearth_package ${CMAKE_INSTALL_LIBDIR}/cmake/hearth)
  install(TARGETS hearth EXPORT hearthTargets
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
          INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT hearthTargets NAMESPACE hearth:: DESTINATION ${hearth_package})
  configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/hearthConfig.cmake.in
                                ${CMAKE_BINARY_DIR}/generated/hearthConfig.cmake
                                INSTALL_DESTINATION ${hearth_package})
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/hearthConfigVersion.cmake
                                   COMPATIBILITY SameMajorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/generated/hearthConfig.cmake
                ${CMAKE_BINARY_DIR}/generated/hearthConfigVersion.cmake
          DESTINATION ${hearth_package})
endif()

# libneuralnetworks.so has no version in its name, as on Android: what looks for it by dlopen() must
# find it.
if(TARGET neuralnetworks)
  set_target_properties(neuralnetworks PROPERTIES INSTALL_RPATH $ORIGIN)
  set(neuralnetworks_package ${CMAKE_INSTALL_LIBDIR}/cmake/neuralnetworks)
  install(TARGETS neuralnetworks EXPORT neuralnetworksTargets
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
          INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT neuralnetworksTargets DESTINATION ${neuralnetworks_package})
  configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/neuralnetworksConfig.cmake.in
                                ${CMAKE_BINARY_DIR}/generated/neuralnetworksConfig.cmake
                                INSTALL_DESTINATION ${neuralnetworks_package})
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/neuralnetworksConfigVersion.cmake
                                   COMPATIBILITY SameMajorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/generated/neuralnetworksConfig.cmake
                ${CMAKE_BINARY_DIR}/generated/neuralnetworksConfigVersion.cmake
          DESTINATION ${neuralnetworks_package})
  file(RELATIVE_PATH hearth_pc_to_prefix
       ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/neuralnetworks.pc.in
                 ${CMAKE_BINARY_DIR}/generated/neuralnetworks.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/generated/neuralnetworks.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
