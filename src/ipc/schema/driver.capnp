# SPDX-License-Identifier: Apache-2.0
# The driver interface (src/hal/device.h) between a runtime and the host of a driver, as messages over
# a Unix socket (src/ipc/frame.h). A client sends Requests and gets a Reply for each, in any order. The
# first request of a connection is `hello`.
#
# What every version keeps, so that two that differ can say so: the frames, Request.call,
# Request.hello, Hello.version, Reply.call and Reply.error.
@0xd2f4b1a86c3e9705;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("hearth::ipc::schema");

# To be raised with every change that the other side has to know of.
const version :UInt32 = 4;

struct Request {
  call @0 :UInt64;  # chosen by the client; the reply has it, too
  union {
    hello @1 :Hello;
    warmUp @2 :Void;
    flush @3 :Void;
    supportedOperations @4 :Model;
    explainOperations @5 :Model;
    explainStart @6 :Preparation;
    prepare @7 :Preparation;
    prepareFromCache @8 :Preparation;  # without the model
    startReport @9 :ReportRequest;
    createExecution @10 :ExecutionRequest;
    compute @11 :Computation;
    allocate @12 :Allocation;
    copyTo @13 :Copy;
    copyFrom @14 :Copy;
    release @15 :Release;  # has no reply
    openMailbox @16 :Mailbox;
    # The result of an execution's last computation, when the answer in the mailbox did not say all.
    fetchResult @17 :UInt64;
    state @18 :Void;
    explainCache @19 :Preparation;  # of files that prepareFromCache would take
    cacheBuild @20 :Void;  # answered with a digest
    startFenced @21 :FencedComputation;  # answered with a fence
    finishFenced @22 :UInt64;  # of the execution; once its fence is readable
  }
}

struct Reply {
  call @0 :UInt64;
  union {
    error @1 :Error;
    done @2 :Void;
    device @3 :Device;  # of `hello`
    support @4 :List(Support);
    # Names an execution or a buffer, on this connection only.
    object @5 :UInt64;
    report @6 :StartReport;
    result @7 :ExecutionResult;
    state @8 :HostState;
    verdict @9 :CacheVerdict;
    digest @10 :Data;
    model @11 :PreparedModel;
    fence @12 :UInt32;  # a descriptor
  }
}

struct HostState {
  clients @0 :UInt32;
  memory @1 :UInt64;  # bytes that belong to the process alone
}

struct Hello {
  version @0 :UInt32;
  apiVersion @1 :UInt32;  # hal::kApiVersion
  pulse @2 :Int32 = -1;  # the descriptor of a socket (src/ipc/pulse.h); -1: none
}

struct Error {
  code @0 :Int32;  # base::ErrorCode
  message @1 :Text;
  context @2 :List(Text);
}

struct Performance {
  operandType @0 :Int32;
  execTime @1 :Float32;
  powerUsage @2 :Float32;
}

struct Device {
  version @0 :UInt32;  # of the host's schema
  name @1 :Text;
  deviceVersion @2 :Text;
  type @3 :Int32;
  featureLevel @4 :Int64;
  operandPerformance @5 :List(Performance);
  relaxedFloat32 @6 :Performance;
  ifPerformance @7 :Performance;
  whilePerformance @8 :Performance;
  extensions @9 :List(Text);
  modelFiles @10 :UInt32;
  dataFiles @11 :UInt32;
  cacheFilesError @12 :Error;  # in place of the two numbers
  process @13 :Int32;
  isShared @14 :Bool;  # whether the host serves clients that do not trust each other
  extensionTypes @15 :List(ExtensionType);
  hasPulse @16 :Bool;  # whether the host answers on the client's pulse
  libraryDevices @17 :UInt32 = 1;  # how many devices the driver's library has
}

struct ExtensionType {
  extension @0 :Text;
  number @1 :UInt16;
  elementSize @2 :UInt32;
  isTensor @3 :Bool;
}

# Shared memory or a part of a file: one of the descriptors that come with the message.
struct Memory {
  descriptor @0 :UInt32;
  offset @1 :UInt64;
  size @2 :UInt64;
  isWritable @3 :Bool;
}

struct Name {
  enum Kind {
    subgraph @0;
    operand @1;
    operation @2;
  }
  kind @0 :Kind;
  subgraph @1 :UInt32;
  index @2 :UInt32;
  text @3 :Text;
}

struct Model {
  bytes @0 :Data;  # graph::encodeModel(); the graph, with the constants that the model copied
  pools @1 :List(Memory);
  names @2 :List(Name);
}

struct Option {
  name @0 :Text;
  value @1 :Text;
}

# Indices of descriptors; -1 for a file that the client has not opened.
struct CacheFiles {
  model @0 :List(Int32);
  data @1 :List(Int32);
  token @2 :Data;
}

struct Preparation {
  model @0 :Model;
  cache @1 :CacheFiles;
  preparation @2 :UInt8;
  preference @3 :Int32;
  priority @4 :Int32;
  deadline @5 :Int64;  # nanoseconds of CLOCK_MONOTONIC; the largest number means never
  threads @6 :UInt32;
  isTuned @7 :Bool;
  driverOptions @8 :List(Option);
  maxActivationBytes @9 :UInt64;
  expectedInputs @10 :List(List(UInt32));
}

struct PreparedModel {
  object @0 :UInt64;  # its name, on this connection only
  hasFences @1 :Bool;  # whether its executions may be started with startFenced
}

struct Support {
  isSupported @0 :Bool;
  kernel @1 :Text;
  reason @2 :Text;
}

struct ReportRequest {
  model @0 :UInt64;
  isFinal @1 :Bool;  # whether to wait for what is in progress
}

struct PackedBytes {
  kind @0 :Text;
  bytes @1 :UInt64;
}

struct StartReport {
  state @0 :UInt8;
  reason @1 :Text;
  packedBytes @2 :List(PackedBytes);
  repackedBytes @3 :UInt64;
  repairedBytes @4 :UInt64;
  mappedBytes @5 :UInt64;
  sharedBytes @6 :UInt64;
  hashedBytes @7 :UInt64;
  activationBytes @8 :UInt64;
  routedAround @9 :List(Text);
  tuningState @10 :UInt8;
  tuningExecutions @11 :UInt64;
  changedNodes @12 :UInt32;
  quickTime @13 :UInt64;
  chosenTime @14 :UInt64;
  cacheProblem @15 :Text;
  shapes @16 :UInt32;
  slowOperations @17 :List(Text);
}

struct Argument {
  enum Kind {
    noValue @0;
    memory @1;
    buffer @2;
    nothing @3;  # a null pointer or pool, which the driver refuses
  }
  kind @0 :Kind;
  memory @1 :UInt32;  # index into ExecutionRequest.memories
  offset @2 :UInt64;
  length @3 :UInt64;
  buffer @4 :UInt64;
  dimensions @5 :List(UInt32);
}

struct ExecutionRequest {
  model @0 :UInt64;
  memories @1 :List(Memory);
  inputs @2 :List(Argument);
  outputs @3 :List(Argument);
  loopTimeout @4 :UInt64;
}

struct Computation {
  execution @0 :UInt64;
  deadline @1 :Int64;  # as Preparation.deadline
}

struct FencedComputation {
  execution @0 :UInt64;
  deadline @1 :Int64;  # as Preparation.deadline
  fences @2 :List(UInt32);  # descriptors
}

# From now on the host also computes the execution when the client rings in this memory
# (src/ipc/mailbox_page.h, execution_words.h).
struct Mailbox {
  execution @0 :UInt64;
  descriptor @1 :UInt32;
}

struct OutputShape {
  dimensions @0 :List(UInt32);
  isSufficient @1 :Bool;
}

# `error` has a code other than 0 when the execution failed; shapes and times may be there, too.
struct ExecutionResult {
  error @0 :Error;
  outputShapes @1 :List(OutputShape);
  onDevice @2 :UInt64;
  inDriver @3 :UInt64;
  copiedBytes @4 :UInt64;
}

struct Role {
  model @0 :UInt64;
  isInput @1 :Bool;
  index @2 :UInt32;
  frequency @3 :Float32;
}

struct Allocation {
  dimensions @0 :List(UInt32);
  roles @1 :List(Role);
}

struct Copy {
  buffer @0 :UInt64;
  memory @1 :Memory;
  dimensions @2 :List(UInt32);  # of what copyFrom brings
}

struct CacheVerdict {
  enum SameModel {
    unknown @0;
    no @1;
    yes @2;
  }
  isHit @0 :Bool;
  code @1 :Text;
  reason @2 :Text;
  isSameModel @3 :SameModel;
}

struct Release {
  enum Kind {
    model @0;
    execution @1;
    buffer @2;
  }
  kind @0 :Kind;
  object @1 :UInt64;
}
