// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/media/picture_tensor.h"

namespace hearth::tools {

// Options of the weight store; the environment decides those that are not given.
struct StoreFlags {
  std::string path;
  std::string mode;  // off, read-only, read-write or strict
  uint64_t maxBytes = 0;
  std::string weightCache;  // one file in place of the store
};

// The options of `hearth run` and `hearth bench`.
struct RunOptions {
  std::string model;
  std::string part;  // of a container
  std::vector<std::string> inputs;
  std::optional<uint64_t> randomSeed;
  std::string labels;
  std::string locale;  // of the model's own labels
  std::optional<size_t> top;
  std::string outputDir;
  std::string overlay;
  std::string device;
  std::string signature;
  std::vector<std::string> shapes;   // NAME=N,N,… of inputs
  std::vector<std::string> outputs;  // names of those that are wanted; empty: all
  std::optional<Normalization> normalization;
  uint32_t threads = 0;
  std::string preparation;  // whole or just-in-time; empty = what the environment sets
  std::string tuning;       // on or off; empty = what the environment sets
  StoreFlags store;
  std::string cacheDir;  // for compilation caching
  std::string token;     // 64 hexadecimal digits; empty: zeros
  uint64_t maxActivationBytes = 0;
  double longestStepSeconds = 0;  // 0 = not known
  std::optional<uint64_t> repeat;
  double timeoutSeconds = 0;  // 0 = none
  bool isJson = false;
  bool isBench = false;
  // `bench` only.
  bool isUntilTuned = false;   // runs the model until its kernels are chosen
  std::string api = "hearth";  // or "nnapi"
};

struct InspectOptions {
  std::string model;
  std::vector<std::string> shapes;  // NAME=N,N,… of inputs
  std::string part;                 // of a container
  double timeoutSeconds = 0;
  bool isJson = false;
  bool isFull = false;   // every tensor and operation in the text
  bool hasPlan = false;  // the partitioning among the devices in the text
};

// What `devices --probe` tries.
struct ProbeOptions {
  std::string library;                       // of the delegate; empty: none is tried
  std::string model;                         // empty: none
  std::vector<std::string> options;          // KEY=VALUE, for the delegate
  std::vector<std::string> variables;        // NAME=VALUE, of its host's environment
  std::vector<std::string> devices;          // device nodes that it uses
  std::vector<std::string> folders;          // that it reads and writes
  std::vector<std::string> customOperators;  // custom operations that it computes
  std::string version;  // of TensorFlow that it was compiled for; empty: not known
};

struct DevicesOptions {
  bool isJson = false;
  bool measures = false;
  ProbeOptions probe;
};

struct ServeOptions {
  std::string device;    // empty: that of the manifest
  std::string manifest;  // of a driver in a library; empty: looked for along HEARTH_DRIVER_PATH
  std::string socket;    // path to listen at
  // The connected socket of one client, or a listening one, in place of a socket's path.
  int descriptor = -1;
  bool isForMany = true;  // whether the descriptor is no client's; serveCommand() finds that out
  bool isDetached = false;
  uint32_t idleExit = 0;           // seconds without a client after which the host ends; 0 = never
  uint32_t clients = 0;            // at a time; 0 = as many as a host has unless it is told
  std::string sandbox = "on";      // or "off", "require"
  std::vector<std::string> files;  // that the driver may use, besides its own
  uint64_t memory = 0;             // bytes of private memory of the process; 0 = no limit
  uint64_t clientMemory = 0;       // bytes that are kept for one client; 0 = the standard
};

struct ConformanceOptions {
  std::vector<std::string> files;
  std::string device = "nnapi-reference";
  std::string api = "driver";  // or "nnapi"
  std::string mode = "sync";   // of executions through NNAPI
  std::string filter;
  unsigned processes = 0;
  unsigned caseTimeoutSeconds = 60;
  bool isJson = false;
  bool isVerbose = false;
};

}  // namespace hearth::tools
