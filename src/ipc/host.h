// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "base/descriptor.h"
#include "base/result.h"
#include "hal/device.h"
#include "ipc/fair_share.h"

namespace hearth::ipc {

class ServedClient;
class SharedModels;

// What a host gives to each of its clients.
struct HostOptions {
  // Whether the clients do not trust each other. Arguments, and constants that are indices or
  // sizes, are then copied, so that no client can change them while they are in use; options for
  // the driver, which may name files, do not count; and the token of a cache belongs to the
  // client's user.
  bool isShared = false;
  unsigned clients = 64;        // at a time
  unsigned clientsOfUser = 16;  // at a time, when shared
  unsigned threads = 8;         // that answer messages of one client
  unsigned mailboxes = 16;      // of one client at a time, with a thread each
  size_t objects = 4096;        // prepared models, executions and buffers of one client
  size_t memories = 1024;       // of one client that are mapped at a time
  // Prepared models that stay, when shared, although no client has them any more: for a device that
  // compiles for long.
  size_t keptModels = 0;
  // How long a thread waits for a message before it ends, and leaves the next one to another
  // thread; 0: for ever.
  std::chrono::milliseconds idleThreads{500};
  // Of one client at a time: what is copied for it, the constants of its models, and what drivers
  // allocate to compute them.
  uint64_t bytes = uint64_t{1} << 30;
  // How long serveAll() goes on without any client; 0: for ever.
  std::chrono::milliseconds idleExit{0};
  // How many devices the driver's library has, as clients are told.
  uint32_t libraryDevices = 1;
  // Of a host without a device: what clients get as the reason.
  std::string whyUnavailable;
};

// What a host and its clients' threads tell each other.
struct HostState {
  HostState();

  std::atomic<uint32_t> clients = 0;  // that exist; ClientPresence counts them
  std::mutex mutex;
  std::condition_variable isLeft;  // the last client is gone
  // Threads that compute now what clients have asked for in mailboxes, or wait for their turn.
  std::atomic<uint32_t> computing = 0;
  // An event: the last thread that waited for messages of a client has ended, and the host has to
  // see to it that they are read. Not valid where there was no descriptor for it.
  base::Descriptor isUnread;
};

// Counts a client of a host as long as it exists. What the client has is destroyed before the count
// goes down if this is its first member.
class ClientPresence {
 public:
  explicit ClientPresence(std::shared_ptr<HostState> state);
  ~ClientPresence();
  ClientPresence(const ClientPresence&) = delete;
  ClientPresence& operator=(const ClientPresence&) = delete;

 private:
  const std::shared_ptr<HostState> state_;
};

// What the thread that accepts clients does at least once in an interval, so that somebody can see
// that it goes on. It never waits for a driver.
struct Heartbeat {
  std::function<void()> beat;  // empty: nothing
  std::chrono::milliseconds interval{1000};
};

// Serves a device to clients in other processes, or in this one. Thread-safe as far as stated.
class Host {
 public:
  // A host whose `device` is null refuses each client with the reason that the options have.
  Host(std::shared_ptr<hal::Device> device, HostOptions options);
  // Ends all connections and waits for what their threads compute.
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // Serves one client over a connected socket until it is gone. What it had is then freed.
  void serve(base::Descriptor socket);

  // Serves all who connect to a listening socket until `stop` can be read, or for as long as the
  // options allow without a client, with heartbeats from the first moment on. In the latter case
  // the socket is shut down, and nobody has connected to it who is not served. Returns an error
  // when the socket cannot be waited for.
  Status serveAll(int listening, int stop, const Heartbeat& heartbeat = {});

  // Ends all connections, and waits until their threads have ended and no client has anything of
  // the device any more, not even the device. Returns false if that takes longer.
  bool end(std::chrono::milliseconds patience);

 private:
  // Starts to serve a client; null when there is no thread for it.
  std::shared_ptr<ServedClient> add(base::Descriptor socket);
  // Whether there was one.
  bool acceptOne(int listening);
  // Accepts who has connected already, and lets nobody else connect.
  void acceptLast(int listening);
  // Lets a message be read that has come for a client without threads.
  static void readOn(ServedClient& client);
  // A sentence why one more client of a user is too many; empty when it is not.
  std::string refusal(uid_t user) const;
  // Forgets the clients whose threads have ended.
  void reap();

  const std::shared_ptr<hal::Device> device_;
  const HostOptions options_;
  FairShare turns_;
  const std::shared_ptr<SharedModels> models_;
  const std::shared_ptr<HostState> state_ = std::make_shared<HostState>();
  std::list<std::shared_ptr<ServedClient>> clients_;
};

// Has the threads of this process share few malloc arenas. A host has a thread for each execution
// that waits, and the C library gives many of them an arena of their own. For a program that is
// nothing but a host, before it has threads.
void shareMallocArenas();

// Makes a socket of a host at `path` and listens on it. Replacing and errors: base::listenAt().
Result<base::Descriptor> listenAt(const std::string& path);

}  // namespace hearth::ipc
