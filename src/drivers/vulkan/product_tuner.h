// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "drivers/vulkan/plan/plan.h"
#include "drivers/vulkan/product_parts.h"

namespace hearth::vulkan {

struct OpenGpu;

// Finds out in which parts a GPU computes the products of models fastest. It measures on a thread
// of its own, a product of each class once, when no execution has run for a moment. What it finds
// holds for models that are prepared from then on, in this and in later processes. Thread-safe.
class ProductTuner {
 public:
  static std::shared_ptr<ProductTuner> create(ProductParts::OpenStore openStore = {});
  // Ends the thread, as does the end of the process.
  ~ProductTuner();
  ProductTuner(const ProductTuner&) = delete;
  ProductTuner& operator=(const ProductTuner&) = delete;

  // Lets the products of a plan be computed in the parts that were found, and notes those of which
  // nothing is known, with the sizes of their tensors. Returns whether all are known, and at least
  // one.
  bool choose(const GpuFacts& facts, Plan* plan);

  // Takes the parts in which the products of a plan are, which an earlier process found by
  // measuring, for those of their classes where nothing is known.
  void adopt(const GpuFacts& facts, const Plan& plan);

  // Calls `then` once all that is noted has been measured, on the thread that measures: with a
  // GPU to compile on. Not at all if the tuner ends before.
  using Then = std::function<void(const OpenGpu& open, ProductTuner& tuner)>;
  void whenMeasured(Then then);

  // Called at the end of an execution. Where something is noted, the thread measures it.
  void noteExecution(const OpenGpu& open);

  // Measures what is noted on the calling thread, whatever else runs.
  void measureNow(const OpenGpu& open);

  // Returns when what was found is stored.
  void flush() { parts_.flush(); }
  void stop();

 private:
  explicit ProductTuner(ProductParts::OpenStore openStore) : parts_(std::move(openStore)) {}
  struct Product {
    std::string productClass;
    Dispatch dispatch;
    std::vector<PlannedTensor> tensors;  // that it binds
  };
  void run(const OpenGpu& open);
  std::optional<Product> next();
  // Calls what waits for the end of measuring, if that is now.
  void tellMeasured(const OpenGpu& open);
  // Waits until there is something to measure. False when the thread is to end.
  bool waitForProducts();
  // Waits until no execution has ended for a moment. False as above.
  bool waitUntilIdle();
  void measure(const OpenGpu& open, const Product& product, bool isPatient);
  // None where it cannot be computed.
  std::optional<double> secondsOf(const OpenGpu& open, const Product& product,
                                  const Dispatch& dispatch, bool isPatient);

  ProductParts parts_;
  std::atomic<bool> isNoted_ = false;  // something
  std::atomic<bool> isEnding_ = false;
  std::atomic<std::chrono::steady_clock::time_point> lastExecution_{};
  base::Mutex mutex_;
  base::Condition changed_;
  std::set<std::string> seen_;  // classes that were noted
  std::vector<Then> waiting_;
  std::deque<Product> noted_;
  std::thread thread_;
  int64_t process_ = 0;  // that has started it
};

}  // namespace hearth::vulkan
