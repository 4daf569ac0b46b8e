// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/model_name.h"

#include <unistd.h>

#include <string_view>

#include "base/format.h"

namespace hearth::cpu {

std::string modelName(const graph::Model& model) {
  for (const memory::PoolRef& pool : model.pools) {
    if (pool->fd() < 0) continue;
    char path[4096];
    const ssize_t length =
        ::readlink(base::formatText("/proc/self/fd/{}", pool->fd()).c_str(), path, sizeof path);
    if (length <= 0) continue;
    const std::string_view whole(path, static_cast<size_t>(length));
    return std::string(whole.substr(whole.rfind('/') + 1));
  }
  return "";
}

}  // namespace hearth::cpu
