// SPDX-License-Identifier: Apache-2.0
// Manifests of drivers: small JSON files in the folders of HEARTH_DRIVER_PATH.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace hearth::hal {

// {"name": "my-device", "library": "libmy_driver.so", "api_version": 1}; other keys are ignored.
// With "host": "hearth", or the path of another program, the library is loaded by that program in a
// process of its own; a program that has the device itself needs no library. "socket" alone is the
// path of the socket of a host that runs already.
// With "shared": true the programs of a user share one host, which the first of them starts.
// What the driver uses while it serves, for the sandbox of its host:
// "needs": {"read_write": [PATH, ...], "read_only": [...], "devices": [...], "code": true}; paths
// are of files and folders that exist, and "code" is for a driver that loads libraries or compiles
// after its start. "if_present": {"read_write": ..., "read_only": ..., "devices": ...} are paths of
// which each machine has others; the last part of each may have asterisks. "variables": [NAME, ...]
// are those of the client's environment that a host of its own gets.
// With "support_library": true the library is one of NNAPI's support libraries, which has no
// "api_version"; "device" names its device where it has more than one. It always has a host,
// "hearth" where none is named: such a library holds a runtime of its own.
// With "measured": true the driver does not know how fast its device is, so that the runtime
// measures it.
// With "numbered": true the library may have further devices of this kind, which are called NAME-2,
// NAME-3 and so on: one for each chip of a machine.
// "custom_operators": [NAME, ...] are custom operations of .tflite files that the device computes,
// and nothing else may be able to.
// A manifest with a "delegate" has neither library nor "api_version", and always a host, too.
struct DriverManifest {
  struct Files {
    std::vector<std::string> readWrite;  // paths as `library`
    std::vector<std::string> readOnly;
    std::vector<std::string> devices;
  };
  struct Needs : Files {
    Files ifPresent;
    std::vector<std::string> variables;
    bool code = false;
  };

  // A driver of ours that hosts an external delegate for TensorFlow Lite:
  // "delegate": {"library": PATH, "options": {KEY: VALUE, ...}, "variables": {NAME: VALUE, ...},
  // "tflite": "2.14", "prepare_seconds": 120, "cache": {"option": KEY, "kind": "folder"}}. Values
  // are texts, numbers or booleans.
  struct Delegate {
    // The cache that the library keeps by itself.
    struct Cache {
      std::string option;       // that takes its path
      bool isFolder = false;    // "kind": "folder" or "file"
      std::string tokenOption;  // "token": one that takes a name for the model; may be empty
    };

    std::string library;                                         // a path as `library`
    std::vector<std::pair<std::string, std::string>> options;    // in the order of their names
    std::vector<std::pair<std::string, std::string>> variables;  // of the host's environment
    std::string version;  // of TensorFlow, that it was compiled for; empty: not known
    // How long the library may take to take or to prepare a model before its host ends; 0: as long
    // as it likes.
    uint32_t prepareSeconds = 120;
    std::optional<Cache> cache;
  };

  std::string path;     // of the manifest
  std::string name;     // of the device
  std::string library;  // absolute, or relative to the manifest's folder as parsed
  std::string host;     // kHearthHost, or a path as `library`
  std::string socket;   // a path as `library`
  bool isShared = false;
  uint64_t apiVersion = 0;
  bool isSupportLibrary = false;
  std::string device;  // in a support library; may be empty
  // "optional": true: where the driver has nothing to work with, it is left out without a message
  // (hal/driver_library.h).
  bool isOptional = false;
  // "asked_for_by": a variable of Hearth's by which users ask for the device: where it is set, the
  // driver is not optional.
  std::string askedForBy;
  bool isMeasured = false;
  bool isNumbered = false;
  uint32_t number = 1;    // of the device among those of the library
  std::string firstName;  // of the first of them; empty unless this is another one
  Needs needs;
  std::optional<Delegate> delegate;
  // Names of custom operations of .tflite files that the device computes.
  std::vector<std::string> customOperators;
};

// The host that is the command hearth of this installation.
inline constexpr char kHearthHost[] = "hearth";

// Parses a manifest; paths stay as written. kBadData names the field.
Result<DriverManifest> parseDriverManifest(std::string_view text);

// Reads a manifest, a regular file of at most 64 KiB. Paths become absolute or relative to the
// current folder, so that the linker's search path is never used. Errors: kNotFound, kIo, kBadData.
Result<DriverManifest> readDriverManifest(const std::string& path);

// Devices that one library may have.
inline constexpr uint32_t kMostNumbered = 16;

// What the manifest of numbered devices says of the device `number`, at least 2. Where the library
// has no such device, it is left out without a message.
DriverManifest numberedManifest(const DriverManifest& manifest, uint32_t number);

// The manifest of the device of this name, if it is one of those of `manifest`.
std::optional<DriverManifest> manifestOfDevice(const DriverManifest& manifest,
                                               std::string_view name);

// The paths that are there and that `path` stands for, whose last part may have asterisks; sorted.
std::vector<std::string> presentPaths(const std::string& path);

// Paths of the *.json files in the folders of a colon-separated search path, in its order and
// sorted by name within each folder. Skips folders that do not exist; a folder that cannot be read
// adds a sentence to `problems`.
std::vector<std::string> findDriverManifests(std::string_view searchPath,
                                             std::vector<std::string>* problems);

}  // namespace hearth::hal
