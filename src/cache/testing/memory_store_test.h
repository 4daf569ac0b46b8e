// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cache/testing/store_test_util.h"

namespace hearth::cache {

// A test with a store where syncing takes no time.
class MemoryStoreTest : public StoreTest {
 protected:
  MemoryStoreTest() : StoreTest(TempFolder::Place::kMemory) {}
};

}  // namespace hearth::cache
