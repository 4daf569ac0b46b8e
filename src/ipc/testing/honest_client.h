// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "hal/device.h"

namespace hearth::ipc {

// Bytes for an input of a model: numbers from -2 to 2 for float32, else any.
std::vector<uint8_t> valuesFor(const graph::Operand& operand, std::mt19937& random);

// Computes a model with one output once.
Result<std::vector<uint8_t>> computeModel(hal::PreparedModel& prepared, const graph::Model& model,
                                          const std::vector<std::vector<uint8_t>>& inputs,
                                          const base::Deadline& deadline = {});

// next = state / 2 + step, of so many float32 numbers; inputs state, step.
graph::Model stepModel(uint32_t count);

// A client that computes the same again and again on a thread of its own, with arguments of the
// host and with a state in the memory of the device, and compares the bytes with those that it got
// in the beginning. Not movable.
class HonestClient {
 public:
  // Computes for the first time, while nobody else does, and goes on.
  explicit HonestClient(std::shared_ptr<hal::Device> device);
  ~HonestClient();
  HonestClient(const HonestClient&) = delete;
  HonestClient& operator=(const HonestClient&) = delete;

  // How often it has computed everything. It ends with the first problem.
  int rounds() const { return rounds_; }
  // An error, or what was computed otherwise than at first; empty while there is none.
  std::string problem() const;

 private:
  struct Case {
    std::string name;
    std::shared_ptr<const graph::Model> model;
    std::shared_ptr<hal::PreparedModel> prepared;
    std::vector<std::vector<uint8_t>> inputs;
    std::vector<uint8_t> expected;
  };

  void prepareAll();
  // What is wrong, or empty.
  std::string computeAll();
  std::string computeState();
  // Compares with what was computed first.
  static std::string check(const std::string& name, Result<std::vector<uint8_t>> computed,
                           std::vector<uint8_t>* expected);

  const std::shared_ptr<hal::Device> device_;
  std::vector<Case> cases_;
  std::shared_ptr<hal::PreparedModel> step_;
  std::vector<std::unique_ptr<hal::Buffer>> sides_;  // of the state
  std::vector<uint8_t> expectedState_;
  std::atomic<int> rounds_ = 0;
  std::atomic<bool> isOver_ = false;
  mutable std::mutex mutex_;
  std::string problem_;
  std::thread thread_;
};

}  // namespace hearth::ipc
