// SPDX-License-Identifier: Apache-2.0
// The promises of hearth.h for all its functions, and the tests that check them:
//
//   handles in any order, NULL freed     ApiTest.HandlesMayGoInAnyOrder, header_c_test
//   *error, results on success only      ContractTest.ErrorsAreNullOnSuccess,
//                                        .AFailureGivesAnErrorAndNoResult, .TheRankIsWrittenAlways
//   strings                              ContractTest.StringsBelongToTheirHandle
//   structures                           ContractTest.ALargerStructure..., .AStructureOfAnOlder...,
//                                        .OptionsHaveAnInitialiser, .EnumerationsHaveAFixedWidth,
//                                        ApiTest.FillsNoMoreThanTheClientKnows
//   threads of the client                ApiModelTest.ExecutionsRunInSeveralThreads
//   no abort on bad arguments            ContractTest.NullIsAnError, ApiModelTest.ReportsBadUse
//   memory in place                      ContractTest.MemoryIsUsedInPlace...
//   signals                              ContractTest.NoHandlerButOfBusErrors, ContractDeathTest.*,
//                                        lost_pages_test.cc
//   threads of ours                      ContractTest.OurThreadsAreNamedAndBlockSignals,
//                                        ProcessTest.ThreadsAreOrdinary...
//   exit                                 ContractTest.FlushWritesWhatWasPacked, OpenStoresTest.*,
//                                        ProcessTest.Exit...
//   fork                                 ProcessTest.Fork..., .AChildDoesNotWait...,
//                                        LogTest.AChildLogs...
//   dlclose                              ProcessTest.ALibraryThatIsClosed...
//   environment                          settings_test.py, secure_process_test.py,
//                                        check_environment.py
//   standard error and output            ContractTest.ACallbackTakesTheMessages, .NothingIsPrinted
//   custom operators                     custom_operator_test.cc
//   version                              ContractTest.TheVersionIsANumber
//   exports                              exports_test.py, library_test.py
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <type_traits>
#include <vector>

#include "hearth/hearth.hpp"

namespace hearth {
namespace {

using testing::HasSubstr;

// A value that no function of the library returns.
template <typename T>
T* untouched() {
  return reinterpret_cast<T*>(uintptr_t{0x5A5A5A5A});
}

class ContractTest : public testing::Test {
 protected:
  ContractTest() : model_(HEARTH_TEST_MODEL) {}
  ~ContractTest() override { hearth_error_free(error_); }

  // Expects a failure with an error object, and frees that.
  void expectFailure(hearth_status status) {
    EXPECT_NE(status, HEARTH_OK);
    ASSERT_NE(error_, nullptr);
    ASSERT_NE(error_, untouched<hearth_error>());
    EXPECT_EQ(hearth_error_code(error_), status);
    EXPECT_STRNE(hearth_error_message(error_), "");
    hearth_error_free(error_);
    error_ = untouched<hearth_error>();
  }
  void expectSuccess(hearth_status status) {
    EXPECT_EQ(status, HEARTH_OK);
    EXPECT_EQ(error_, nullptr);
    error_ = untouched<hearth_error>();
  }
  void TearDown() override { error_ = nullptr; }

  // The error of the last call. It is not null before the call, so that a call that does not set it
  // is noticed.
  hearth_error* error_ = untouched<hearth_error>();
  const Model model_;
};

TEST_F(ContractTest, ErrorsAreNullOnSuccess) {
  hearth_model* model = nullptr;
  expectSuccess(hearth_model_load_file(HEARTH_TEST_MODEL, &model, &error_));
  std::ifstream file(HEARTH_TEST_MODEL, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  hearth_model* copy = nullptr;
  expectSuccess(hearth_model_load_memory(bytes.data(), bytes.size(), &copy, &error_));
  hearth_model_free(copy);
  expectSuccess(hearth_model_load_file_part(HEARTH_TEST_MODEL, nullptr, &copy, &error_));
  hearth_model_free(copy);
  char* description = nullptr;
  expectSuccess(hearth_container_describe(HEARTH_TEST_MODEL, &description, &error_));
  hearth_string_free(description);
  hearth_device_info device{};
  device.size = sizeof(device);
  expectSuccess(hearth_device_get(0, &device, &error_));
  hearth_host_info host{};
  host.size = sizeof(host);
  expectSuccess(hearth_device_host(0, &host, &error_));
  hearth_speed_info speed{};
  speed.size = sizeof(speed);
  expectSuccess(hearth_device_speed(0, &speed, &error_));
  char* json = nullptr;
  expectSuccess(hearth_model_inspect(model, &json, &error_));
  hearth_string_free(json);
  expectSuccess(hearth_model_explain_start(model, nullptr, &json, &error_));
  hearth_string_free(json);
  expectSuccess(hearth_cache_folder_describe("/", &json, &error_));
  hearth_string_free(json);

  hearth_compilation* compilation = nullptr;
  expectSuccess(hearth_compile(model, nullptr, &compilation, &error_));
  expectSuccess(hearth_compile_signatures(model, nullptr, nullptr, 0, nullptr, &error_));
  hearth_tensor_info input{};
  input.size = sizeof(input);
  expectSuccess(hearth_compilation_input(compilation, 0, &input, &error_));
  hearth_tensor_info output{};
  output.size = sizeof(output);
  expectSuccess(hearth_compilation_output(compilation, 0, &output, &error_));
  hearth_start_report report{};
  report.size = sizeof(report);
  expectSuccess(hearth_compilation_start_report(compilation, &report, &error_));
  expectSuccess(hearth_compilation_start_report_json(compilation, &json, &error_));
  hearth_string_free(json);

  hearth_execution* execution = nullptr;
  expectSuccess(hearth_execution_create(compilation, &execution, &error_));
  std::vector<uint8_t> in(input.byte_size);
  std::vector<uint8_t> out(output.byte_size);
  expectSuccess(
      hearth_execution_set_input(execution, 0, in.data(), in.size(), nullptr, 0, &error_));
  expectSuccess(hearth_execution_set_output(execution, 0, out.data(), out.size(), &error_));
  expectSuccess(hearth_execution_run(execution, 0, &error_));
  hearth_event* event = nullptr;
  expectSuccess(hearth_execution_start(execution, 0, &event, &error_));
  expectSuccess(hearth_event_wait(event, 0, &error_));
  hearth_event_free(event);
  uint32_t dimensions[8];
  size_t rank = std::size(dimensions);
  expectSuccess(hearth_execution_output_shape(execution, 0, dimensions, &rank, &error_));
  expectSuccess(hearth_execution_reset_state(execution, &error_));
  hearth_statistics statistics{};
  statistics.size = sizeof(statistics);
  expectSuccess(hearth_execution_statistics(execution, &statistics, &error_));
  expectSuccess(hearth_set_log_callback(HEARTH_LOG_DEFAULT, nullptr, nullptr, &error_));
  expectSuccess(hearth_flush(0, &error_));
  hearth_execution_free(execution);
  hearth_compilation_free(compilation);
  hearth_model_free(model);
}

TEST_F(ContractTest, AFailureGivesAnErrorAndNoResult) {
  auto* model = untouched<hearth_model>();
  expectFailure(hearth_model_load_file("/nonexistent", &model, &error_));
  expectFailure(hearth_model_load_memory("no model", 8, &model, &error_));
  expectFailure(hearth_model_load_file_part(HEARTH_TEST_MODEL, "a part", &model, &error_));
  EXPECT_EQ(model, untouched<hearth_model>());

  hearth_compile_options options = HEARTH_COMPILE_OPTIONS_INIT;
  options.signature = "no such signature";
  auto* compilation = untouched<hearth_compilation>();
  expectFailure(hearth_compile(model_.get(), &options, &compilation, &error_));
  const char* const keys[] = {"no such signature"};
  expectFailure(hearth_compile_signatures(model_.get(), nullptr, keys, 1, &compilation, &error_));
  EXPECT_EQ(compilation, untouched<hearth_compilation>());
  auto* json = untouched<char>();
  expectFailure(hearth_model_explain_start(model_.get(), &options, &json, &error_));
  expectFailure(hearth_cache_folder_describe("/nonexistent", &json, &error_));
  EXPECT_EQ(json, untouched<char>());

  const Compilation compiled = model_.compile();
  hearth_tensor_info info{};
  info.size = sizeof(info);
  info.rank = 99;
  expectFailure(hearth_compilation_input(compiled.get(), 99, &info, &error_));
  expectFailure(hearth_compilation_output(compiled.get(), 99, &info, &error_));
  EXPECT_EQ(info.rank, 99u);
  hearth_device_info device{};
  device.size = sizeof(device);
  expectFailure(hearth_device_get(99, &device, &error_));
  hearth_host_info host{};
  host.size = sizeof(host);
  expectFailure(hearth_device_host(99, &host, &error_));
  hearth_speed_info speed{};
  speed.size = sizeof(speed);
  expectFailure(hearth_device_speed(99, &speed, &error_));
  expectFailure(hearth_device_measure(99, &error_));
  EXPECT_EQ(device.name, nullptr);

  const Execution execution = compiled.createExecution();
  auto* event = untouched<hearth_event>();
  // Nothing is bound, so the start or its run fails.
  expectFailure(hearth_execution_run(execution.get(), 0, &error_));
  if (hearth_execution_start(execution.get(), 0, &event, &error_) == HEARTH_OK) {
    EXPECT_EQ(error_, nullptr);
    expectFailure(hearth_event_wait(event, 0, &error_));
    hearth_event_free(event);
  } else {
    EXPECT_EQ(event, untouched<hearth_event>());
    hearth_error_free(error_);
    error_ = untouched<hearth_error>();
  }
  expectFailure(hearth_set_log_callback(99, nullptr, nullptr, &error_));
}

TEST_F(ContractTest, TheRankIsWrittenAlways) {
  const Compilation compiled = model_.compile();
  const Execution execution = compiled.createExecution();
  const size_t expected = compiled.outputs().at(0).dimensions.size();
  ASSERT_GT(expected, 1u);
  std::vector<uint32_t> dimensions(expected, 77);
  size_t rank = 1;
  expectFailure(
      hearth_execution_output_shape(execution.get(), 0, dimensions.data(), &rank, &error_));
  EXPECT_EQ(rank, expected);
  EXPECT_EQ(dimensions, std::vector<uint32_t>(expected, 77));
  expectSuccess(
      hearth_execution_output_shape(execution.get(), 0, dimensions.data(), &rank, &error_));
  EXPECT_EQ(dimensions, compiled.outputs()[0].dimensions);
}

TEST_F(ContractTest, NullIsAnError) {
  hearth_error** const e = &error_;
  expectFailure(hearth_device_get(0, nullptr, e));
  expectFailure(hearth_device_host(0, nullptr, e));
  expectFailure(hearth_device_speed(0, nullptr, e));
  expectFailure(hearth_model_load_file(nullptr, nullptr, e));
  expectFailure(hearth_model_load_file(HEARTH_TEST_MODEL, nullptr, e));
  expectFailure(hearth_model_load_memory(nullptr, 1, nullptr, e));
  expectFailure(hearth_model_load_file_part(nullptr, nullptr, nullptr, e));
  expectFailure(hearth_model_load_memory_part(nullptr, 1, nullptr, nullptr, e));
  expectFailure(hearth_container_describe(nullptr, nullptr, e));
  expectFailure(hearth_container_describe(HEARTH_TEST_MODEL, nullptr, e));
  expectFailure(hearth_model_inspect(nullptr, nullptr, e));
  expectFailure(hearth_compile(nullptr, nullptr, nullptr, e));
  expectFailure(hearth_compile(model_.get(), nullptr, nullptr, e));
  expectFailure(hearth_compile_signatures(nullptr, nullptr, nullptr, 0, nullptr, e));
  expectFailure(hearth_model_explain_start(nullptr, nullptr, nullptr, e));
  expectFailure(hearth_model_explain_cache(nullptr, nullptr, nullptr, nullptr, nullptr, e));
  expectFailure(hearth_cache_folder_describe(nullptr, nullptr, e));
  expectFailure(hearth_compilation_input(nullptr, 0, nullptr, e));
  expectFailure(hearth_compilation_output(nullptr, 0, nullptr, e));
  expectFailure(hearth_compilation_start_report(nullptr, nullptr, e));
  expectFailure(hearth_compilation_start_report_json(nullptr, nullptr, e));
  expectFailure(hearth_execution_create(nullptr, nullptr, e));
  expectFailure(hearth_execution_set_input(nullptr, 0, nullptr, 0, nullptr, 0, e));
  expectFailure(hearth_execution_set_output(nullptr, 0, nullptr, 0, e));
  expectFailure(hearth_execution_run(nullptr, 0, e));
  expectFailure(hearth_execution_start(nullptr, 0, nullptr, e));
  expectFailure(hearth_execution_output_shape(nullptr, 0, nullptr, nullptr, e));
  expectFailure(hearth_execution_reset_state(nullptr, e));
  expectFailure(hearth_execution_statistics(nullptr, nullptr, e));
  expectFailure(hearth_event_wait(nullptr, 0, e));
  expectFailure(hearth_custom_operator_register(nullptr, e));
  EXPECT_EQ(hearth_model_signature_count(nullptr), 0u);
  EXPECT_EQ(hearth_model_signature_key(nullptr, 0), nullptr);
  EXPECT_STREQ(hearth_compilation_device(nullptr), "");
  EXPECT_EQ(hearth_compilation_input_count(nullptr), 0u);
  EXPECT_EQ(hearth_compilation_output_count(nullptr), 0u);
  EXPECT_EQ(hearth_event_is_done(nullptr), 0);
  EXPECT_EQ(hearth_error_code(nullptr), HEARTH_OK);
  EXPECT_STREQ(hearth_error_message(nullptr), "");
  hearth_compile_options_init(nullptr, sizeof(hearth_compile_options));
}

TEST_F(ContractTest, StringsBelongToTheirHandle) {
  const Compilation first = model_.compile();
  hearth_tensor_info info{};
  info.size = sizeof(info);
  expectSuccess(hearth_compilation_input(first.get(), 0, &info, &error_));
  const std::string name = info.name;
  const std::string device = hearth_compilation_device(first.get());
  const char* const key = hearth_model_signature_key(model_.get(), 0);
  {
    const Compilation second = model_.compile();
  }
  EXPECT_EQ(info.name, name);
  EXPECT_EQ(hearth_compilation_device(first.get()), device);
  EXPECT_EQ(key, model_.signatureKeys().at(0));
}

// A structure of a later version of the header.
template <typename Known>
struct Later {
  Known known{};
  uint64_t more = 0;
  Later() { known.size = sizeof(Later); }
};

TEST_F(ContractTest, ALargerStructureIsTakenIfItAsksForNothingUnknown) {
  Later<hearth_compile_options> options;
  hearth_compile_options_init(&options.known, sizeof(options));
  EXPECT_EQ(options.known.size, sizeof(options));
  hearth_compilation* compilation = nullptr;
  expectSuccess(hearth_compile(model_.get(), &options.known, &compilation, &error_));
  hearth_compilation_free(compilation);
  compilation = untouched<hearth_compilation>();
  options.more = 1;
  EXPECT_EQ(hearth_compile(model_.get(), &options.known, &compilation, &error_), HEARTH_BAD_DATA);
  EXPECT_EQ(compilation, untouched<hearth_compilation>());
  EXPECT_THAT(hearth_error_message(error_), HasSubstr(std::to_string(sizeof(options))));
  hearth_error_free(error_);
  // Sizes that were not set are refused.
  for (const size_t wrong : {SIZE_MAX, size_t{1} << 32, size_t{4097}, size_t{0}}) {
    options.known.size = wrong;
    expectFailure(hearth_compile(model_.get(), &options.known, &compilation, &error_));
  }
}

TEST_F(ContractTest, ALargerStructureIsFilledAsFarAsItIsKnown) {
  const Compilation compiled = model_.compile();
  const Execution execution = compiled.createExecution();
  const auto expectFilled = [&](auto fill, auto later) {
    later.more = 77;
    expectSuccess(fill(&later.known));
    EXPECT_EQ(later.known.size, sizeof(later.known));
    EXPECT_EQ(later.more, 77u);
  };
  expectFilled([&](hearth_device_info* info) { return hearth_device_get(0, info, &error_); },
               Later<hearth_device_info>());
  expectFilled([&](hearth_host_info* info) { return hearth_device_host(0, info, &error_); },
               Later<hearth_host_info>());
  expectFilled([&](hearth_speed_info* info) { return hearth_device_speed(0, info, &error_); },
               Later<hearth_speed_info>());
  expectFilled(
      [&](hearth_tensor_info* info) {
        return hearth_compilation_input(compiled.get(), 0, info, &error_);
      },
      Later<hearth_tensor_info>());
  expectFilled(
      [&](hearth_start_report* report) {
        return hearth_compilation_start_report(compiled.get(), report, &error_);
      },
      Later<hearth_start_report>());
  expectFilled(
      [&](hearth_statistics* statistics) {
        return hearth_execution_statistics(execution.get(), statistics, &error_);
      },
      Later<hearth_statistics>());
}

TEST_F(ContractTest, AStructureOfAnOlderClientIsEnough) {
  hearth_compile_options options{};
  options.size = offsetof(hearth_compile_options, preference);
  options.preference = 99;  // behind what it knows
  hearth_compilation* compilation = nullptr;
  expectSuccess(hearth_compile(model_.get(), &options, &compilation, &error_));
  hearth_compilation_free(compilation);
  options.size -= 1;
  expectFailure(hearth_compile(model_.get(), &options, &compilation, &error_));
}

TEST_F(ContractTest, OptionsHaveAnInitialiser) {
  const hearth_compile_options standard = HEARTH_COMPILE_OPTIONS_INIT;
  hearth_compile_options options;
  std::memset(&options, 0xFF, sizeof(options));
  hearth_compile_options_init(&options, sizeof(options));
  EXPECT_EQ(options.size, sizeof(options));
  EXPECT_EQ(options.priority, standard.priority);
  EXPECT_EQ(options.preference, standard.preference);
  EXPECT_EQ(options.store, nullptr);
  EXPECT_EQ(options.tuning, standard.tuning);
  // An older client has a smaller structure.
  std::memset(&options, 0xFF, sizeof(options));
  hearth_compile_options_init(&options, offsetof(hearth_compile_options, threads));
  EXPECT_EQ(options.size, offsetof(hearth_compile_options, threads));
  EXPECT_EQ(options.priority, standard.priority);
  EXPECT_EQ(options.threads, UINT32_MAX);
  hearth_compile_options_init(&options, 1);
  EXPECT_EQ(options.size, offsetof(hearth_compile_options, threads));
}

TEST_F(ContractTest, EnumerationsHaveAFixedWidth) {
  static_assert(std::is_same_v<decltype(hearth_tensor_info::type), int32_t>);
  static_assert(std::is_same_v<decltype(hearth_device_info::type), int32_t>);
  static_assert(std::is_same_v<decltype(hearth_start_report::state), int32_t>);
  static_assert(std::is_same_v<decltype(hearth_custom_tensor::type), int32_t>);
  static_assert(std::is_same_v<decltype(hearth_compile_options::preference), int32_t>);
  static_assert(std::is_same_v<decltype(hearth_compile_options::priority), int32_t>);
  static_assert(std::is_same_v<decltype(hearth_compile_options::cache), int32_t>);
  static_assert(std::is_same_v<decltype(hearth_compile_options::preparation), int32_t>);
  static_assert(std::is_same_v<decltype(hearth_compile_options::tuning), int32_t>);
  static_assert(std::is_same_v<decltype(hearth_compile_options::kv_layout), int32_t>);
  for (int32_t hearth_compile_options::* field :
       {&hearth_compile_options::preference, &hearth_compile_options::priority,
        &hearth_compile_options::cache, &hearth_compile_options::preparation,
        &hearth_compile_options::tuning, &hearth_compile_options::kv_layout}) {
    for (const int32_t wrong : {-1, 7, INT32_MIN, INT32_MAX}) {
      hearth_compile_options options = HEARTH_COMPILE_OPTIONS_INIT;
      options.*field = wrong;
      hearth_compilation* compilation = nullptr;
      EXPECT_EQ(hearth_compile(model_.get(), &options, &compilation, nullptr), HEARTH_BAD_DATA);
    }
  }
}

TEST_F(ContractTest, TheVersionIsANumber) {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned patch = 0;
  ASSERT_EQ(std::sscanf(hearth_version(), "%u.%u.%u", &major, &minor, &patch), 3);
  EXPECT_EQ(hearth_version_number(), major * 1000000 + minor * 1000 + patch);
  EXPECT_EQ(hearth_version_number(), static_cast<uint32_t>(HEARTH_VERSION_NUMBER));
  EXPECT_EQ(versionNumber(), hearth_version_number());
}

// Pages followed by one that cannot be read.
class GuardedPages {
 public:
  explicit GuardedPages(size_t bytes) : size_((bytes / kPage + 2) * kPage) {
    begin_ = static_cast<uint8_t*>(
        ::mmap(nullptr, size_ + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(begin_ + size_, kPage, PROT_NONE);
  }
  ~GuardedPages() { ::munmap(begin_, size_ + kPage); }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;
  uint8_t* begin() const { return begin_; }
  uint8_t* end() const { return begin_ + size_; }
  // An address for `bytes` bytes with `padding` more bytes in their last page.
  uint8_t* roomFor(size_t bytes, size_t padding) const {
    uint8_t* at = begin_;
    while ((reinterpret_cast<uintptr_t>(at) + bytes - 1) % kPage + padding >= kPage) at += padding;
    return at;
  }

 private:
  static constexpr size_t kPage = 65536;  // of any machine
  size_t size_;
  uint8_t* begin_ = nullptr;
};

TEST_F(ContractTest, MemoryIsUsedInPlaceWhereTheTensorsAlignmentAllows) {
  const Compilation compiled = model_.compile();
  Execution execution = compiled.createExecution();
  const TensorInfo input = compiled.inputs().at(0);
  const TensorInfo output = compiled.outputs().at(0);
  ASSERT_GE(input.alignment, 1u);
  ASSERT_GE(input.padding, 1u);
  const GuardedPages inputs(input.byteSize + input.padding);
  const GuardedPages outputs(output.byteSize + output.padding);
  const std::vector<float> values(input.byteSize / sizeof(float), 0.25f);

  const auto run = [&](uint8_t* in, uint8_t* out) {
    std::memcpy(in, values.data(), input.byteSize);
    std::memset(out, 0xAA, output.byteSize);
    execution.setInput(0, in, input.byteSize);
    execution.setOutput(0, out, output.byteSize);
    execution.run();
    return std::vector<uint8_t>(out, out + output.byteSize);
  };
  uint8_t* const in = inputs.roomFor(input.byteSize, input.padding);
  uint8_t* const out = outputs.roomFor(output.byteSize, output.padding);
  const std::vector<uint8_t> expected = run(in, out);
  EXPECT_EQ(execution.statistics().copiedBytes, 0u);
  // Misaligned memory and memory at the end of a page give the same numbers from a copy.
  EXPECT_EQ(run(in + 1, out), expected);
  EXPECT_EQ(execution.statistics().copiedBytes, input.byteSize);
  EXPECT_EQ(run(inputs.end() - input.byteSize, out), expected);
  EXPECT_EQ(execution.statistics().copiedBytes, input.byteSize);
  EXPECT_EQ(run(in, out + 1), expected);
  EXPECT_EQ(execution.statistics().copiedBytes, output.byteSize);
  EXPECT_EQ(run(in, out), expected);
  EXPECT_EQ(execution.statistics().copiedBytes, 0u);
}

TEST_F(ContractTest, MemoryIsUsedInPlaceUpToAPagesEndWhereTheCallerPromisesPadding) {
  const Compilation compiled = model_.compile();
  Execution execution = compiled.createExecution();
  const TensorInfo input = compiled.inputs().at(0);
  const TensorInfo output = compiled.outputs().at(0);
  const GuardedPages inputs(input.byteSize);
  std::vector<uint8_t> result(output.byteSize + 4 * output.alignment);
  execution.setOutput(0, result.data(), output.byteSize);
  const auto copied = [&](uint8_t* data) {
    execution.setInput(0, data, input.byteSize);
    execution.run();
    return execution.statistics().copiedBytes;
  };
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  uint8_t* const inside = inputs.end() - page - input.byteSize;  // the next page can be read
  ASSERT_GE(inside, inputs.begin());
  const uint64_t before = copied(inside);
  EXPECT_GE(before, input.byteSize);
  execution.promisePadding(true);
  EXPECT_EQ(copied(inside), before - input.byteSize);
  // The promise is about what is bound afterwards.
  execution.promisePadding(false);
  execution.run();
  EXPECT_EQ(execution.statistics().copiedBytes, before - input.byteSize);
  EXPECT_EQ(copied(inside), before);
  EXPECT_EQ(hearth_execution_promise_padding(nullptr, 1, nullptr), HEARTH_UNEXPECTED_NULL);
}

// The line of this name in a status file of /proc.
std::string statusLine(const std::filesystem::path& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name + ":"))
      return line.substr(line.find_first_not_of(" \t", name.size() + 1));
  return "";
}

uint64_t signalsOf(const std::filesystem::path& path, const std::string& name) {
  const std::string text = statusLine(path, name);
  return text.empty() ? 0 : std::stoull(text, nullptr, 16);
}

constexpr uint64_t bit(int signal) {
  return uint64_t{1} << (signal - 1);
}

// Signals for which this process has handlers. Once it has started a thread, the C library handles
// signals that no program may use; these are left out.
uint64_t handledSignals() {
  constexpr uint64_t kOfTheLibrary = bit(32) | bit(33);
  return signalsOf("/proc/self/status", "SigCgt") & ~kOfTheLibrary;
}

// An execution with memory for its input and its output.
struct BoundExecution {
  explicit BoundExecution(const Compilation& compiled)
      : execution(compiled.createExecution()),
        in(compiled.inputs().at(0).byteSize),
        out(compiled.outputs().at(0).byteSize) {
    execution.setInput(0, in);
    execution.setOutput(0, out);
  }

  Execution execution;
  std::vector<uint8_t> in, out;
};

// Compiles, runs in this thread and in the background, and waits for all background work.
void useEverything(const Model& model) {
  CompileOptions options;
  options.threads = 2;
  const Compilation compiled = model.compile(options);
  BoundExecution bound(compiled);
  bound.execution.run();
  bound.execution.start().wait();
  flush();
}

TEST_F(ContractTest, NoHandlerButOfBusErrors) {
  const uint64_t handled = handledSignals();
  const uint64_t ignored = signalsOf("/proc/self/status", "SigIgn");
  const uint64_t blocked = signalsOf("/proc/self/status", "SigBlk");
  useEverything(Model(HEARTH_TEST_MODEL));
  EXPECT_EQ(handledSignals() | bit(SIGBUS), handled | bit(SIGBUS));
  EXPECT_EQ(signalsOf("/proc/self/status", "SigIgn"), ignored);
  EXPECT_EQ(signalsOf("/proc/self/status", "SigBlk"), blocked);
}

// Runs in a new process, in which no model was loaded before.
TEST(ContractDeathTest, AModelInMemoryWithoutAStoreNeedsNoHandler) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto compile = [] {
    std::ifstream file(HEARTH_TEST_MODEL, std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
    const uint64_t before = handledSignals();
    const Model model(bytes.data(), bytes.size());
    CompileOptions options;
    options.cache = HEARTH_CACHE_OFF;
    const Compilation compiled = model.compile(options);
    BoundExecution(compiled).execution.run();
    return handledSignals() == before;
  };
  EXPECT_EXIT(std::exit(compile() ? 0 : 1), testing::ExitedWithCode(0), "");
}

TEST_F(ContractTest, OurThreadsAreNamedAndBlockSignals) {
  const std::string own = statusLine("/proc/self/status", "Name");
  useEverything(model_);
  size_t ours = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string name = statusLine(task.path() / "status", "Name");
    // Threads of the test or of a sanitizer, and threads that have just ended, do not count.
    if (name == own || name.empty()) continue;
    ++ours;
    EXPECT_TRUE(name.starts_with("hearth-")) << name;
    const uint64_t blocked = signalsOf(task.path() / "status", "SigBlk");
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGCHLD, SIGUSR1, SIGPROF})
      EXPECT_TRUE(blocked == 0 || (blocked & bit(signal)) != 0) << name << " " << signal;
    const int policy = ::sched_getscheduler(std::stoi(task.path().filename()));
    EXPECT_TRUE(policy == SCHED_OTHER || policy == SCHED_IDLE || policy < 0) << name;
  }
  EXPECT_GT(ours, 0u);
}

TEST_F(ContractTest, FlushWritesWhatWasPacked) {
  const char* const data = std::getenv("HEARTH_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "HEARTH_TEST_DATA is not set.";
  std::string folder = std::filesystem::temp_directory_path() / "hearth-contract-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  CompileOptions options;
  options.cache = HEARTH_CACHE_READ_WRITE;
  options.weightCache = folder + "/bundle";
  const Model model(std::string(data) + "/data/models/mobilenet_v1_0.25_128_quant.tflite");
  const Compilation compiled = model.compile(options);
  EXPECT_EQ(compiled.startReport().state, HEARTH_START_COLD) << compiled.startReport().reason;
  flush();
  EXPECT_THAT(model.explainStart(options), HasSubstr("\"warm\""));
  // Nothing is pending, so flush() returns at once.
  flush(std::chrono::seconds(60));
  EXPECT_EQ(hearth_flush(UINT64_MAX, nullptr), HEARTH_OK);
  std::filesystem::remove_all(folder);
}

struct Messages {
  static void add(hearth_log_level level, const char* message, void* user) {
    static_cast<Messages*>(user)->texts.emplace_back(level, message);
  }
  std::vector<std::pair<hearth_log_level, std::string>> texts;
};

TEST_F(ContractTest, ACallbackTakesTheMessages) {
  ::setenv("HEARTH_REPORT", "/nonexistent/report", 1);
  Messages messages;
  testing::internal::CaptureStderr();
  setLogCallback(HEARTH_LOG_WARN, Messages::add, &messages);
  model_.compile();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  ASSERT_FALSE(messages.texts.empty());
  EXPECT_EQ(messages.texts[0].first, HEARTH_LOG_WARN);
  EXPECT_THAT(messages.texts[0].second, HasSubstr("/nonexistent/report"));
  EXPECT_EQ(messages.texts[0].second.find('\n'), std::string::npos);
  const size_t count = messages.texts.size();
  // Messages below the level are dropped.
  setLogCallback(HEARTH_LOG_OFF, Messages::add, &messages);
  testing::internal::CaptureStderr();
  model_.compile();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  // Without a callback, messages go to standard error again.
  setLogCallback(HEARTH_LOG_DEFAULT, nullptr);
  testing::internal::CaptureStderr();
  model_.compile();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("/nonexistent/report"));
  EXPECT_EQ(messages.texts.size(), count);
  ::unsetenv("HEARTH_REPORT");
}

TEST_F(ContractTest, NothingIsPrinted) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  useEverything(Model(HEARTH_TEST_MODEL));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace hearth
