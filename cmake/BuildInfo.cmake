# SPDX-License-Identifier: Apache-2.0
# Generates <hearth_build_info.h> with HEARTH_VERSION ("0.1.0", or "0.1.0+g0123abc" in a git
# checkout), found by every target that links hearth_build_info.

set(hearth_version ${PROJECT_VERSION})
find_package(Git QUIET)
if(Git_FOUND)
  # The checkout may belong to another user than the one who builds.
  set(hearth_git ${GIT_EXECUTABLE} -C ${PROJECT_SOURCE_DIR} -c safe.directory=*)
  execute_process(COMMAND ${hearth_git} describe --always --abbrev=9 --exclude *
                  OUTPUT_VARIABLE hearth_commit OUTPUT_STRIP_TRAILING_WHITESPACE
                  RESULT_VARIABLE hearth_failed ERROR_QUIET)
  # A new commit appends to this file, wherever a worktree keeps it.
  execute_process(COMMAND ${hearth_git} rev-parse --path-format=absolute --git-path logs/HEAD
                  OUTPUT_VARIABLE hearth_head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT hearth_failed)
    string(APPEND hearth_version "+g${hearth_commit}")
    if(EXISTS "${hearth_head}")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${hearth_head})
    endif()
  endif()
endif()

configure_file(${CMAKE_CURRENT_LIST_DIR}/hearth_build_info.h.in
               ${CMAKE_BINARY_DIR}/generated/hearth_build_info.h @ONLY)
add_library(hearth_build_info INTERFACE)
target_include_directories(hearth_build_info INTERFACE
                           $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/generated>)
