// SPDX-License-Identifier: Apache-2.0
// Our XNNPACK stays on our pool in a process that has the system's XNNPACK and pthreadpool in its
// global scope. This program itself links neither.
#include <dlfcn.h>
#include <gtest/gtest.h>

namespace {

TEST(Isolation, SystemLibrariesInTheGlobalScopeChangeNothing) {
  ASSERT_NE(dlopen(HEARTH_SYSTEM_XNNPACK, RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
  ASSERT_NE(dlsym(RTLD_DEFAULT, "xnn_initialize"), nullptr);
  ASSERT_NE(dlsym(RTLD_DEFAULT, "pthreadpool_parallelize_1d"), nullptr);
  void* module = dlopen(HEARTH_ISOLATION_MODULE, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(module, nullptr) << dlerror();
  const auto multiply = reinterpret_cast<int (*)()>(dlsym(module, "multiplyOnOurPool"));
  ASSERT_NE(multiply, nullptr);
  EXPECT_GT(multiply(), 0);
}

}  // namespace
