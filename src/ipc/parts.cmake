# SPDX-License-Identifier: Apache-2.0
# What the transport and the driver host are made of, and clients use too.
hearth_library(hearth_ipc_parts
  SOURCES early_bell.cc end_forecast.cc expected_time.cc fair_share.cc host_pulse.cc idle_processor.cc
          mailbox_client.cc mailbox_end.cc mailbox_page.cc mailbox_server.cc patience.cc
  DEPS hearth_base)

hearth_test(ipc_parts_test
  SOURCES early_bell_test.cc end_forecast_test.cc expected_time_test.cc fair_share_test.cc
          idle_processor_test.cc mailbox_spin_test.cc mailbox_test.cc
  DEPS hearth_ipc_parts)
hearth_fuzzer(mailbox_fuzz SOURCES mailbox_fuzz.cc DEPS hearth_ipc_parts)

# A mailbox beside a bare futex and sockets.
add_executable(mailbox_bench ${PROJECT_SOURCE_DIR}/bench/mailbox_bench.cc)
hearth_options(mailbox_bench)
target_include_directories(mailbox_bench PRIVATE ${PROJECT_SOURCE_DIR}/bench)
target_link_libraries(mailbox_bench PRIVATE hearth_ipc_parts)

# What only a host needs, apart from the rest: clients do not load libseccomp.
find_library(HEARTH_SECCOMP seccomp REQUIRED)
find_path(HEARTH_SECCOMP_INCLUDE seccomp.h REQUIRED)
mark_as_advanced(HEARTH_SECCOMP HEARTH_SECCOMP_INCLUDE)
hearth_library(hearth_ipc_sandbox
  SOURCES call_filter.cc landlock.cc sandbox.cc sandbox_threads.cc
  DEPS hearth_base)
target_include_directories(hearth_ipc_sandbox SYSTEM PRIVATE ${HEARTH_SECCOMP_INCLUDE})
target_link_libraries(hearth_ipc_sandbox PRIVATE ${HEARTH_SECCOMP})

if(HEARTH_BUILD_TESTS)
  find_package(SQLite3 REQUIRED)
endif()
hearth_test(ipc_sandbox_test
  SOURCES call_filter_test.cc landlock_test.cc sandbox_test.cc
  DEPS hearth_ipc_sandbox SQLite::SQLite3)
