# SPDX-License-Identifier: Apache-2.0
# Target hearth_xnnpack: a private copy of the system's XNNPACK that runs on our thread pool.
#
# The system's library binds to libpthreadpool, and any other XNNPACK that a process has loaded
# globally would win the symbol look-up. So the build copies the library, prefixes every symbol it
# exports and every pthreadpool function it imports with "hearth_", and makes it need
# libhearth_threads.so instead. Sources include the generated <hearth_xnnpack.h> in place of
# <xnnpack.h> and call the functions under their usual names.

find_library(HEARTH_SYSTEM_XNNPACK XNNPACK REQUIRED)
find_path(HEARTH_SYSTEM_XNNPACK_INCLUDE xnnpack.h REQUIRED)
find_program(HEARTH_PATCHELF patchelf REQUIRED)
mark_as_advanced(HEARTH_SYSTEM_XNNPACK HEARTH_SYSTEM_XNNPACK_INCLUDE HEARTH_PATCHELF)

set(HEARTH_XNNPACK_LIBRARY ${CMAKE_BINARY_DIR}/lib/libhearth_xnnpack.so)
set(HEARTH_XNNPACK_INCLUDE ${CMAKE_BINARY_DIR}/private_xnnpack)
# One prefixed symbol per line; a test looks each of them up.
set(HEARTH_XNNPACK_SYMBOLS ${HEARTH_XNNPACK_INCLUDE}/symbols.txt)

set(hearth_xnnpack_script ${CMAKE_CURRENT_LIST_DIR}/rename_xnnpack.cmake)
add_custom_command(
  OUTPUT ${HEARTH_XNNPACK_LIBRARY} ${HEARTH_XNNPACK_INCLUDE}/hearth_xnnpack.h
         ${HEARTH_XNNPACK_SYMBOLS}
  COMMAND ${CMAKE_COMMAND} -D INPUT=${HEARTH_SYSTEM_XNNPACK}
          -D HEADER=${HEARTH_SYSTEM_XNNPACK_INCLUDE}/xnnpack.h
          -D OUTPUT=${HEARTH_XNNPACK_LIBRARY} -D INCLUDE=${HEARTH_XNNPACK_INCLUDE}
          -D SYMBOLS=${HEARTH_XNNPACK_SYMBOLS}
          -D PATCHELF=${HEARTH_PATCHELF} -D NM=${CMAKE_NM} -P ${hearth_xnnpack_script}
  DEPENDS ${HEARTH_SYSTEM_XNNPACK} ${HEARTH_SYSTEM_XNNPACK_INCLUDE}/xnnpack.h
          ${hearth_xnnpack_script}
  COMMENT "Making the private copy of XNNPACK"
  VERBATIM)
add_custom_target(hearth_xnnpack_copy DEPENDS ${HEARTH_XNNPACK_LIBRARY})

add_library(hearth_xnnpack_library SHARED IMPORTED GLOBAL)
set_target_properties(hearth_xnnpack_library PROPERTIES
  IMPORTED_LOCATION ${HEARTH_XNNPACK_LIBRARY}
  IMPORTED_SONAME libhearth_xnnpack.so)

add_library(hearth_xnnpack INTERFACE)
target_include_directories(hearth_xnnpack SYSTEM INTERFACE
  ${HEARTH_XNNPACK_INCLUDE} ${HEARTH_SYSTEM_XNNPACK_INCLUDE})
target_link_libraries(hearth_xnnpack INTERFACE hearth_xnnpack_library hearth_threads)
add_dependencies(hearth_xnnpack hearth_xnnpack_copy)

install(PROGRAMS ${HEARTH_XNNPACK_LIBRARY} DESTINATION ${HEARTH_INSTALL_PRIVATE_LIBDIR})
