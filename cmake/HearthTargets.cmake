# SPDX-License-Identifier: Apache-2.0
# The few functions by which every folder declares its targets, so that warnings, sanitizers and
# include paths are the same everywhere.

function(hearth_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-missing-field-initializers)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  if(HEARTH_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${HEARTH_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all)
    target_link_options(${target} PRIVATE -fsanitize=${HEARTH_SANITIZE})
    if(HEARTH_BUILD_FUZZERS)
      target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
  endif()
endfunction()

# hearth_library(NAME SOURCES file... [DEPS target...]): a static library of one layer.
function(hearth_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  hearth_options(${name})
  target_link_libraries(${name} PUBLIC ${arg_DEPS})
endfunction()

# hearth_test(NAME SOURCES file... [DEPS target...]): one GoogleTest program, run by ctest.
function(hearth_test name)
  if(NOT HEARTH_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  hearth_options(${name})
  # Tests wait for the compiler longer than they run.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  target_link_libraries(${name} PRIVATE ${arg_DEPS} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600)
endfunction()

# hearth_fuzzer(NAME SOURCES file... [DEPS target...]): a libFuzzer program (fuzz preset only), also
# built by the target hearth_fuzzers.
function(hearth_fuzzer name)
  if(NOT HEARTH_BUILD_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  hearth_options(${name})
  target_link_libraries(${name} PRIVATE ${arg_DEPS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  if(NOT TARGET hearth_fuzzers)
    add_custom_target(hearth_fuzzers)
  endif()
  add_dependencies(hearth_fuzzers ${name})
endfunction()
