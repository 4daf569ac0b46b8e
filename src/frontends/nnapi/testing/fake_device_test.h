// SPDX-License-Identifier: Apache-2.0
// A fixture for tests of the C API that replace the devices.
#pragma once

#include "frontends/nnapi/objects/devices.h"
#include "frontends/nnapi/testing/fake_device.h"
#include "frontends/nnapi/testing/test_models.h"

namespace hearth::nnapi {

// Each test leaves the devices as it found them.
class FakeDeviceTest : public QuietTest {
 protected:
  void TearDown() override { setDevicesForTest({}); }
};

}  // namespace hearth::nnapi
