// SPDX-License-Identifier: Apache-2.0
// What one client of a host has there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>

#include "base/result.h"
#include "driver.capnp.h"
#include "hal/device.h"

namespace hearth::ipc {

class ModelMemory;
class ServedExecution;
class ServedMailbox;
struct ServedModel;

// A prepared model of a client.
struct ClientModel {
  std::shared_ptr<const ServedModel> served;
  bool isOwn = true;  // whether it was prepared for this client
  hal::Priority priority = hal::Priority::kMedium;
  unsigned threads = 1;          // that a computation may use
  std::shared_ptr<void> room;    // for what the driver makes of the constants
  std::shared_ptr<void> places;  // of the pools that other clients use, too
  std::shared_ptr<ModelMemory> memory;
  std::shared_ptr<void> others;  // room for what another client's preparation has allocated
};

// Memory of the device for arguments of a client's models.
struct ClientBuffer {
  std::shared_ptr<ModelMemory> memory;
  std::unique_ptr<hal::Buffer> buffer;
  std::set<std::tuple<uint64_t, bool, uint32_t>> roles;  // model, whether input, index
};

// The objects of a client by their names, which are numbers that mean nothing on another
// connection. Thread-safe. Objects are freed without a lock, since drivers may take their time.
class ServedObjects {
 public:
  struct Limits {
    size_t objects;  // models, executions and buffers
    size_t mailboxes;
  };
  explicit ServedObjects(Limits limits) : limits_(limits) {}

  // The name of a new object. Errors: kResourceExhaustedTransient when the client has as many
  // objects as it may have; kDeadObject after close().
  Result<uint64_t> add(std::shared_ptr<ClientModel> model);
  Result<uint64_t> add(std::shared_ptr<ServedExecution> execution);
  Result<uint64_t> add(std::shared_ptr<ClientBuffer> buffer);
  // Of an execution. Errors as above, and kBadState when it has one already.
  Status addMailbox(uint64_t execution, std::shared_ptr<ServedMailbox> mailbox);

  // Null for a name that the client has no such object of.
  std::shared_ptr<ClientModel> model(uint64_t name) const;
  std::shared_ptr<ServedExecution> execution(uint64_t name) const;
  std::shared_ptr<ClientBuffer> buffer(uint64_t name) const;

  void removeMailbox(uint64_t execution);
  // Gives an object up; an execution's mailbox is closed.
  void release(schema::Release::Kind kind, uint64_t name);
  // Gives all objects up and closes all mailboxes.
  void close();

 private:
  template <typename Object>
  using Map = std::map<uint64_t, std::shared_ptr<Object>>;

  template <typename Object>
  Result<uint64_t> add(Map<Object>* objects, std::shared_ptr<Object> object);
  template <typename Object>
  std::shared_ptr<Object> find(const Map<Object>& objects, uint64_t name) const;

  const Limits limits_;
  mutable std::mutex mutex_;
  bool isClosed_ = false;  // guarded by mutex_, as is all that follows
  uint64_t lastName_ = 0;
  Map<ClientModel> models_;
  Map<ServedExecution> executions_;
  Map<ClientBuffer> buffers_;
  Map<ServedMailbox> mailboxes_;  // by the name of the execution
};

}  // namespace hearth::ipc
