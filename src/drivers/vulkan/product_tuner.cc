// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/product_tuner.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "base/helper_thread.h"
#include "base/immortal.h"
#include "base/log.h"
#include "drivers/vulkan/plan/products.h"
#include "drivers/vulkan/prepared_model.h"
#include "drivers/vulkan/run_context.h"

namespace hearth::vulkan {
namespace {

using Clock = std::chrono::steady_clock;

// Without an execution for so long the GPU is taken for idle.
constexpr std::chrono::milliseconds kIdle{100};
// A measurement takes about so long, or one run of a product that takes longer.
constexpr double kMeasured = 2e-3;  // seconds
constexpr double kMostRepeats = 32;
constexpr int kRuns = 3;
// Other parts have to save so much.
constexpr double kWorthIt = 0.95;

// Those of this process. Their threads use Vulkan, and must not go on while the process exits.
struct Tuners {
  base::Mutex mutex;
  std::vector<std::weak_ptr<ProductTuner>> all;
};

Tuners& tuners();

void stopAll() {
  std::vector<std::weak_ptr<ProductTuner>> all;
  {
    const std::lock_guard lock(tuners().mutex);
    all = tuners().all;
  }
  for (const auto& weak : all)
    if (const auto tuner = weak.lock()) tuner->stop();
}

Tuners& tuners() {
  static constinit base::Immortal<Tuners> only;
  return only.get([] {
    std::atexit(stopAll);
    return Tuners();
  });
}

// The dispatch alone, `repeats` times, with tensors of its own. They hold what is there: how long a
// product takes does not depend on its numbers.
Plan planOf(const Dispatch& dispatch, std::vector<PlannedTensor> tensors, uint32_t repeats,
            uint64_t alignment) {
  Plan plan;
  for (PlannedTensor& tensor : tensors) {
    tensor.offset = plan.arenaBytes;
    plan.arenaBytes += (tensor.bytes + alignment - 1) / alignment * alignment;
  }
  plan.tensors = std::move(tensors);
  plan.dispatches.assign(repeats, dispatch);
  return plan;
}

}  // namespace

std::shared_ptr<ProductTuner> ProductTuner::create(ProductParts::OpenStore openStore) {
  std::shared_ptr<ProductTuner> tuner(new ProductTuner(std::move(openStore)));
  const std::lock_guard lock(tuners().mutex);
  std::erase_if(tuners().all, [](const auto& weak) { return weak.expired(); });
  tuners().all.push_back(tuner);
  return tuner;
}

ProductTuner::~ProductTuner() {
  stop();
}

void ProductTuner::stop() {
  isEnding_ = true;
  std::thread ended;
  bool isOfParent = false;
  {
    const std::lock_guard lock(mutex_);
    ended = std::move(thread_);
    isOfParent = process_ != ::getpid();
    changed_.notify_all();
  }
  if (!ended.joinable()) return;
  if (isOfParent)
    new std::thread(std::move(ended));  // it does not exist here
  else
    ended.join();
}

bool ProductTuner::choose(const GpuFacts& facts, Plan* plan) {
  uint32_t known = 0, unknown = 0;
  for (Dispatch& dispatch : plan->dispatches) {
    const auto shape = productShapeOf(dispatch);
    if (!shape) continue;
    std::string productClass = productClassOf(dispatch, *shape);
    if (const auto choice = parts_.find(facts, productClass)) {
      static_cast<void>(choosePart(*choice, facts, &dispatch));
      ++known;
      continue;
    }
    ++unknown;
    const std::lock_guard lock(mutex_);
    if (!seen_.insert(productClass).second) continue;
    Product product{std::move(productClass), dispatch, {}};
    for (uint32_t i = 0; i < dispatch.bindings.size(); ++i) {
      PlannedTensor tensor;
      tensor.bytes = plan->tensors[dispatch.bindings[i].tensor].bytes;
      tensor.root = i;
      product.tensors.push_back(std::move(tensor));
      product.dispatch.bindings[i].tensor = i;
    }
    noted_.push_back(std::move(product));
    isNoted_ = true;
  }
  return known != 0 && unknown == 0;
}

void ProductTuner::adopt(const GpuFacts& facts, const Plan& plan) {
  for (const Dispatch& dispatch : plan.dispatches) {
    const auto shape = productShapeOf(dispatch);
    if (!shape || dispatch.constant >= kParts.size()) continue;
    const std::string productClass = productClassOf(dispatch, *shape);
    if (!parts_.find(facts, productClass)) parts_.keep(facts, productClass, dispatch.constant);
  }
}

void ProductTuner::whenMeasured(Then then) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(then));
  // It may have been measured since the plan was made.
  isNoted_ = true;
}

void ProductTuner::tellMeasured(const OpenGpu& open) {
  std::vector<Then> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (isEnding_ || !noted_.empty()) return;
    waiting = std::exchange(waiting_, {});
  }
  for (const Then& then : waiting) then(open, *this);
}

void ProductTuner::noteExecution(const OpenGpu& open) {
  if (!isNoted_.load(std::memory_order_relaxed)) return;
  lastExecution_.store(Clock::now(), std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  if (isEnding_) return;
  if (thread_.joinable()) {
    changed_.notify_all();
    return;
  }
  process_ = ::getpid();
  // Not the tuner itself, which ends the thread.
  auto own = std::make_shared<OpenGpu>(open);
  own->tuner = nullptr;
  thread_ = base::startHelperThread(
      "hearth-gpu-tune", [this, own] { run(*own); }, base::Processors::kOfProcess);
}

void ProductTuner::run(const OpenGpu& open) {
  while (waitForProducts())
    if (const std::optional<Product> product = next())
      measure(open, *product, true);
    else
      tellMeasured(open);
}

void ProductTuner::measureNow(const OpenGpu& open) {
  OpenGpu own = open;
  own.tuner = nullptr;
  while (const std::optional<Product> product = next()) measure(own, *product, false);
  tellMeasured(own);
}

std::optional<ProductTuner::Product> ProductTuner::next() {
  const std::lock_guard lock(mutex_);
  if (noted_.empty()) return std::nullopt;
  Product product = std::move(noted_.front());
  noted_.pop_front();
  return product;
}

bool ProductTuner::waitForProducts() {
  std::unique_lock lock(mutex_);
  while (!isEnding_ && noted_.empty() && waiting_.empty()) {
    isNoted_ = false;
    changed_.wait(lock);
  }
  return !isEnding_;
}

bool ProductTuner::waitUntilIdle() {
  std::unique_lock lock(mutex_);
  while (!isEnding_) {
    const Clock::time_point idle = lastExecution_.load(std::memory_order_relaxed) + kIdle;
    if (Clock::now() >= idle) return true;
    changed_.wait_until(lock, idle);
  }
  return false;
}

void ProductTuner::measure(const OpenGpu& open, const Product& product, bool isPatient) {
  const GpuFacts& facts = open.gpu->facts();
  uint32_t best = 0;
  double standard = 0, least = 0;
  for (uint32_t choice = 0; choice < kParts.size(); ++choice) {
    Dispatch dispatch = product.dispatch;
    if (!choosePart(choice, facts, &dispatch)) continue;
    // Compilers make mistakes in some variants only.
    if (open.answers != nullptr && !open.answers->check(open, dispatch.shader, choice)) continue;
    const std::optional<double> seconds = secondsOf(open, product, dispatch, isPatient);
    if (!seconds && choice == 0) return;
    if (!seconds) continue;
    if (choice == 0) standard = least = *seconds;
    if (*seconds >= least || *seconds > kWorthIt * standard) continue;
    best = choice;
    least = *seconds;
  }
  if (isEnding_) return;
  base::logDebug("Products {} take {:.3g} us in parts of {}, {:.3g} in parts of {}.",
                 product.productClass, standard * 1e6, kParts[0], least * 1e6, kParts[best]);
  parts_.keep(facts, product.productClass, best);
  open.pipelines->saveToStore();
}

std::optional<double> ProductTuner::secondsOf(const OpenGpu& open, const Product& product,
                                              const Dispatch& dispatch, bool isPatient) {
  const uint64_t alignment = open.gpu->facts().rangeAlignment;
  std::optional<double> least;
  for (double repeats = 1;;) {
    const auto count = static_cast<uint32_t>(repeats);
    const Plan plan = planOf(dispatch, product.tensors, count, alignment);
    auto context = RunContext::create(open.gpu, *open.pipelines, plan, nullptr);
    if (!context || !(*context)->bind({})) return std::nullopt;
    // The first run only warms up.
    for (int i = 0; i <= kRuns; ++i) {
      if (isPatient && !waitUntilIdle()) return std::nullopt;
      const Clock::time_point start = Clock::now();
      if (!(*context)->run()) return std::nullopt;
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count() / count;
      if (i > 0) least = std::min(seconds, least.value_or(seconds));
    }
    if (count > 1) return least;
    repeats = std::clamp(kMeasured / *least, 1.0, kMostRepeats);
    if (repeats < 2) return least;
    least.reset();
  }
}

}  // namespace hearth::vulkan
