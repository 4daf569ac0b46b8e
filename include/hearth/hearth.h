// SPDX-License-Identifier: Apache-2.0
// Hearth's C API: a small, stable ABI (C11 and C++). hearth.hpp wraps it for C++17.
//
// Rules that hold for every function here:
// - Handles are opaque and reference counted inside: they may be freed in any order, and an object
//   made from a handle stays usable after that handle is freed. Freeing NULL does nothing.
// - A function that can fail returns HEARTH_OK or an error code and takes `error` last. If `error`
//   is not NULL, success sets *error to NULL, and failure sets it to an error object that the
//   caller frees (or to NULL if there is no memory for one). Other out-parameters are written on
//   success only, except the rank of hearth_execution_output_shape.
// - A null pointer where an object is needed fails with HEARTH_UNEXPECTED_NULL. Functions without
//   `error` return 0, "" or NULL for a NULL handle.
// - Strings are zero-terminated UTF-8, except names and keys that are not UTF-8 in the model file.
//   A returned `const char*` belongs to the handle it came from and lives as long as that handle.
//   The caller frees a returned `char*` with hearth_string_free.
// - Structures begin with `size`, which the caller sets to sizeof(structure). Later versions add
//   fields at the end only, and 0 in a new field means what older libraries do. A function that
//   reads a structure accepts one larger than the library's own (up to 4096 bytes) if all bytes
//   behind the known fields are zero, and otherwise fails with HEARTH_BAD_DATA. A function that
//   fills a structure writes the fields that caller and library both know, sets `size` to the
//   number of bytes written and leaves the rest alone. Enumerations in structures are int32_t.
// - Several threads may use a model, a compilation or an event at once. Only one thread at a time
//   may use an execution.
// - No function throws, or aborts on bad arguments.
//
// Side effects of the library in the process that loads it (docs/process.md has the details):
// - Signals. SIGBUS has a handler while files of a weight store or of a model are mapped: a page
//   that was cut off such a file reads as zeros, and the run that read it is repeated or fails.
//   Every other SIGBUS goes on to what the signal meant before. A program that loads models from
//   memory and compiles with HEARTH_CACHE_OFF has no such handler. The library installs no other
//   handler and touches no other signal.
// - Threads. Loading, compiling and running a model start threads, which may go on in the
//   background. Their names begin with "hearth-". They block all signals but those of their own
//   faults, and run under the standard scheduling policy or SCHED_IDLE, whatever the policy of the
//   thread that starts them. A program need not wait for them.
// - exit() waits until the packed weights of all compilations are written for the next start, but
//   gives up when nothing has moved for about ten seconds. hearth_set_work_at_exit and
//   HEARTH_AT_EXIT=leave decline that wait; hearth_flush waits earlier. The library destroys
//   nothing at exit: other threads may be in any function meanwhile. _exit() and quick_exit() write
//   nothing.
// - fork(). A child may use the models, compilations and executions of its parent and make new
//   ones, whatever other threads of the parent were doing. A run in flight at the fork belongs to
//   the parent: in the child, waiting for its event fails with HEARTH_OP_FAILED, and its execution
//   can only be freed, which does not block. A fork waits until the library's locks are free.
// - dlclose() does not unload the library, because its threads may be inside.
// - Environment. docs/settings.md lists the variables that the library reads. Each compilation
//   reads most of them again: no thread may call setenv() meanwhile. All count as unset in a
//   process with rights that its starter lacks (set-uid, set-gid, file capabilities); such a
//   process has no weight store of its own unless the compile options name one.
// - Standard error gets warnings about problems that the library works around, and failures of
//   NNAPI's functions; hearth_set_log_callback redirects these lines. The library never writes to
//   standard output.
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define HEARTH_EXPORT __attribute__((visibility("default")))
#else
#define HEARTH_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_VERSION_MAJOR 0
#define HEARTH_VERSION_MINOR 1
#define HEARTH_VERSION_PATCH 0

#define HEARTH_VERSION_NUMBER \
  (HEARTH_VERSION_MAJOR * 1000000 + HEARTH_VERSION_MINOR * 1000 + HEARTH_VERSION_PATCH)

// Version of the library in use, for example "0.1.0". Builds of a checkout append "+" and a name of
// the commit. The string is static. The macros above are the version of this header.
HEARTH_EXPORT const char* hearth_version(void);
// Version of the library in use, encoded like HEARTH_VERSION_NUMBER: 1002003 is 1.2.3.
HEARTH_EXPORT uint32_t hearth_version_number(void);

// --- Errors ---------------------------------------------------------------------------------

// 1 to 14 are NNAPI's result codes.
typedef enum hearth_status {
  HEARTH_OK = 0,
  HEARTH_OUT_OF_MEMORY = 1,
  HEARTH_INCOMPLETE = 2,
  HEARTH_UNEXPECTED_NULL = 3,
  HEARTH_BAD_DATA = 4,
  HEARTH_OP_FAILED = 5,
  HEARTH_BAD_STATE = 6,
  HEARTH_UNMAPPABLE = 7,
  HEARTH_OUTPUT_INSUFFICIENT_SIZE = 8,
  HEARTH_UNAVAILABLE_DEVICE = 9,
  HEARTH_MISSED_DEADLINE_TRANSIENT = 10,
  HEARTH_MISSED_DEADLINE_PERSISTENT = 11,
  HEARTH_RESOURCE_EXHAUSTED_TRANSIENT = 12,
  HEARTH_RESOURCE_EXHAUSTED_PERSISTENT = 13,
  HEARTH_DEAD_OBJECT = 14,
  HEARTH_NOT_FOUND = 100,    // a file, device, signature or tensor does not exist
  HEARTH_IO = 101,           // the operating system refused a read, write, map or lock
  HEARTH_UNSUPPORTED = 102,  // valid, but nothing here implements it
} hearth_status;

typedef struct hearth_error hearth_error;

HEARTH_EXPORT hearth_status hearth_error_code(const hearth_error* error);
// A sentence that names the thing, the value and the limit.
HEARTH_EXPORT const char* hearth_error_message(const hearth_error* error);
HEARTH_EXPORT void hearth_error_free(hearth_error* error);

HEARTH_EXPORT void hearth_string_free(char* string);

// --- The process ----------------------------------------------------------------------------

typedef enum hearth_log_level {
  HEARTH_LOG_DEFAULT = -1,  // the level that HEARTH_LOG sets, else warnings and errors
  HEARTH_LOG_TRACE = 0,
  HEARTH_LOG_DEBUG = 1,
  HEARTH_LOG_INFO = 2,
  HEARTH_LOG_WARN = 3,
  HEARTH_LOG_ERROR = 4,
  HEARTH_LOG_OFF = 5,  // nothing; no message has it
} hearth_log_level;

// `message` is one or more sentences without a line end, and is valid during the call only. `user`
// is the pointer given to hearth_set_log_callback.
typedef void (*hearth_log_callback)(hearth_log_level level, const char* message, void* user);

// Sends messages of `level` and above to `callback`, or to standard error if it is NULL. A process
// begins with (HEARTH_LOG_DEFAULT, NULL, NULL). Thread-safe.
//
// One thread at a time calls the callback. That thread may belong to the library and may hold its
// locks: the callback must not wait for other threads that use the library, must not throw, and may
// call no function of the library but this one. Messages that the callback itself causes go to
// standard error. When this function returns, the previous callback is not running and is not
// called again, except that a callback which replaces itself runs to its end. A child made by
// fork() keeps the callback. Drivers in libraries of their own and XNNPACK write to standard error
// themselves. HEARTH_BAD_DATA: `level` does not exist.
HEARTH_EXPORT hearth_status hearth_set_log_callback(int32_t level,  // hearth_log_level
                                                    hearth_log_callback callback, void* user,
                                                    hearth_error** error);

// Waits until the packed weights of earlier compilations are written for the next start. Fails with
// HEARTH_MISSED_DEADLINE_TRANSIENT after `timeout_ns` (0 = no limit); the library then goes on
// writing. HEARTH_RESOURCE_EXHAUSTED_TRANSIENT: there is no thread for a wait with a time-out. A
// file that cannot be written is no failure. A just-in-time compilation has packed all weights once
// hearth_compilation_start_report returns. Thread-safe.
HEARTH_EXPORT hearth_status hearth_flush(uint64_t timeout_ns, hearth_error** error);

// Sets whether exit() waits like hearth_flush, overriding HEARTH_AT_EXIT. With `works` not 0, the
// default, exit() waits, but gives up when nothing has moved for about ten seconds. With 0 the next
// start packs again whatever was not written. Thread-safe.
HEARTH_EXPORT void hearth_set_work_at_exit(int works);

// --- Tensors --------------------------------------------------------------------------------

// Element types, as in the model file.
typedef enum hearth_type {
  HEARTH_TYPE_FLOAT32 = 1,
  HEARTH_TYPE_FLOAT16 = 2,
  HEARTH_TYPE_FLOAT64 = 3,
  HEARTH_TYPE_INT8 = 4,
  HEARTH_TYPE_UINT8 = 5,
  HEARTH_TYPE_INT16 = 6,
  HEARTH_TYPE_UINT16 = 7,
  HEARTH_TYPE_INT32 = 8,
  HEARTH_TYPE_UINT32 = 9,
  HEARTH_TYPE_INT64 = 10,
  HEARTH_TYPE_UINT64 = 11,
  HEARTH_TYPE_BOOL = 12,       // one byte, 0 or 1
  HEARTH_TYPE_INT4 = 13,       // two elements in a byte, the first in the low half
  HEARTH_TYPE_COMPLEX64 = 14,  // two float32, the real and the imaginary part
  HEARTH_TYPE_STRING = 15,     // any bytes; 8 bytes stand for them: see hearth_execution_string
} hearth_type;

// An input or output. Elements lie in row-major order without gaps.
typedef struct hearth_tensor_info {
  size_t size;
  const char* name;
  int32_t type;  // hearth_type
  uint32_t rank;
  const uint32_t* dimensions;  // `rank` of them; 0 = not known before a run
  float scale;                 // real = scale * (stored - zero_point); 0 = not quantised
  int32_t zero_point;
  uint64_t byte_size;  // 0 when a dimension is not known
  // `dimensions`, with the unknown ones as the model file was written with (often 1). An input has
  // these when hearth_execution_set_input gets no dimensions.
  const uint32_t* default_dimensions;
  // In bytes, of memory that is used in place: see hearth_execution_set_input.
  uint32_t alignment;
  uint32_t padding;
} hearth_tensor_info;

// --- Devices --------------------------------------------------------------------------------

typedef enum hearth_device_type {
  HEARTH_DEVICE_UNKNOWN = 0,
  HEARTH_DEVICE_OTHER = 1,
  HEARTH_DEVICE_CPU = 2,
  HEARTH_DEVICE_GPU = 3,
  HEARTH_DEVICE_ACCELERATOR = 4,
} hearth_device_type;

typedef struct hearth_device_info {
  size_t size;
  const char* name;  // unique; all strings here live as long as the process
  const char* version;
  int32_t type;            // hearth_device_type
  int64_t feature_level;   // NNAPI's
  const char* extensions;  // names separated by spaces
} hearth_device_info;

// Devices in the order of preference: hearth-cpu, those of drivers found along HEARTH_DRIVER_PATH,
// nnapi-reference. A compilation without a device gives each operation to the device that computes
// it fastest. The first call makes the list, which never changes. An index out of range is
// HEARTH_NOT_FOUND. Thread-safe.
HEARTH_EXPORT size_t hearth_device_count(void);
HEARTH_EXPORT hearth_status hearth_device_get(size_t index, hearth_device_info* info,
                                              hearth_error** error);

// Where the driver of a device runs: HEARTH_DRIVER_HOSTS and the manifests of drivers say so.
typedef enum hearth_host_kind {
  HEARTH_HOST_NONE = 0,     // in this process
  HEARTH_HOST_SPAWNED = 1,  // in a process that serves this one
  HEARTH_HOST_SHARED = 2,   // in a process that serves others, too
} hearth_host_kind;

typedef struct hearth_host_info {
  size_t size;
  int32_t kind;           // hearth_host_kind; all else is 0 for HEARTH_HOST_NONE
  int32_t process;        // the host's process id, as the host sees it; 0 when it is gone
  uint32_t clients;       // its connections
  uint64_t memory_bytes;  // resident, and shared with no other process
  uint64_t restarts;      // hosts that this process has seen take the place of an earlier one
} hearth_host_info;

// What is true of the device's host at this moment. Asks the host, for a second at most; what it
// does not answer is 0. Starts no host. Thread-safe.
HEARTH_EXPORT hearth_status hearth_device_host(size_t index, hearth_host_info* info,
                                               hearth_error** error);

// How fast a device is, in seconds; 0 where it has not been measured.
typedef struct hearth_speed_info {
  size_t size;
  double execution;          // of any execution, whatever it computes
  double operation;          // of any operation
  double argument_byte;      // of each byte of the inputs and outputs of an execution
  double moved_byte;         // of each byte that an operation with few products reads or writes
  double float32_product;    // of a multiplication with an addition, in layers of many
  double float16_product;    // the same for float16
  double quantized_product;  // the same for 8 bits
} hearth_speed_info;

// What is known of the device's speed with the number of threads that HEARTH_THREADS sets, from
// this process or from the weight store. Where a driver does not know how fast its device is, a
// compilation that may use that device, hearth-cpu and no third one measures them once. Measures
// nothing itself. Thread-safe.
HEARTH_EXPORT hearth_status hearth_device_speed(size_t index, hearth_speed_info* info,
                                                hearth_error** error);

// Measures a device again, with the number of threads that HEARTH_THREADS sets, and remembers the
// result in the weight store in place of what is known: for a device that was measured while the
// machine was busy. Takes some tenths of a second. Programs that run already go on with what they
// know. HEARTH_UNSUPPORTED: the device is not one that is measured. Thread-safe.
HEARTH_EXPORT hearth_status hearth_device_measure(size_t index, hearth_error** error);

// --- Custom operators -----------------------------------------------------------------------

// How many dimensions a tensor of a custom operator may have.
#define HEARTH_CUSTOM_MAX_RANK 8
// Room for the message of a custom operator's function, with the zero at its end.
#define HEARTH_CUSTOM_MESSAGE_BYTES 512
// The rank of an output that `prepare` has not yet described.
#define HEARTH_RANK_UNKNOWN UINT32_MAX

// An input or output of a custom operator. Elements lie in row-major order without gaps.
typedef struct hearth_custom_tensor {
  size_t size;   // set by the library
  int32_t type;  // hearth_type
  uint32_t rank;
  uint32_t dimensions[HEARTH_CUSTOM_MAX_RANK];  // `rank` of them
  // real = scale * (stored - zero_point); 0 = not quantised. Tensors of 8-bit integers that the
  // model does not quantise have scale 1 and zero point 0.
  float scale;
  int32_t zero_point;
  // Of a constant with a scale for each index of dimension `channel_dimension`; else NULL and 0.
  const float* channel_scales;
  uint32_t channel_count;
  uint32_t channel_dimension;
  // A multiple of the element's size. Inputs are only read. NULL in `prepare` for outputs and for
  // inputs whose values are not known yet.
  void* data;
  uint64_t byte_size;  // 0 for an output in `prepare`
} hearth_custom_tensor;

// What the functions of a custom operator are called with. Everything but `state` belongs to the
// library and is valid during the call only.
typedef struct hearth_custom_call {
  size_t size;    // set by the library
  void* user;     // that of the operator
  void* state;    // what `init` has stored here; NULL without `init`
  char* message;  // an empty string with room for HEARTH_CUSTOM_MESSAGE_BYTES bytes
  // The operation's custom options in the file, any bytes; NULL and 0 when it has none, and in
  // `free`.
  const void* options;
  size_t option_bytes;
  int32_t operation_version;  // the version that the file gives to the operation
  int32_t padding;
  // None in `init` and `free`. NULL stands for an input that the file omits.
  const hearth_custom_tensor* const* inputs;
  size_t input_count;
  hearth_custom_tensor* const* outputs;
  size_t output_count;
} hearth_custom_call;

// Ends a call: HEARTH_OK, or a failure, for which the function may write a sentence to
// call->message. HEARTH_OUT_OF_MEMORY, HEARTH_BAD_DATA and HEARTH_UNSUPPORTED reach the program as
// they are, any other code as HEARTH_OP_FAILED.
typedef hearth_status (*hearth_custom_function)(hearth_custom_call* call);

// An operator for custom operations of .tflite files that the library does not know.
//
// The functions are called by any thread, the library's own included, and by several at once, for
// the same `state` too: `prepare` and `compute` must not change the state without a lock of their
// own. They may call the functions of this library, but must not wait for the compilation or run
// that called them. The library holds no lock of its own meanwhile. An exception that leaves
// them counts as a failure. What they read from the model (options, shapes, values) is as
// untrusted as the file.
typedef struct hearth_custom_operator {
  size_t size;
  const char* name;  // the operation's custom code in the file: 1 to 1024 bytes
  // Any number; to be changed when `prepare` would answer otherwise than before. Models that an
  // earlier process compiled with another version are compiled anew.
  int32_t version;
  int32_t padding;  // 0
  void* user;       // for the functions
  // Optional. Makes call->state for one operation of a model. The library may make several states
  // for one operation, for instance once while it reads the model.
  hearth_custom_function init;
  // Optional. Frees a state; called once for each success of `init`. What it returns is ignored.
  void (*free)(hearth_custom_call* call);
  // Describes the outputs: sets rank and dimensions of each, and type and quantisation where those
  // that the model file declares, which they have before the call, are not right. All inputs have
  // their shapes; constants have their values. The answer must depend on nothing but the call.
  // HEARTH_INCOMPLETE says that the shapes depend on values that are not known yet: the library
  // then calls `prepare` again in each run, with the values of all inputs, and the types and
  // quantisation must be those of the file.
  hearth_custom_function prepare;
  // Computes the outputs, all of which have memory, as `prepare` described them. No time-out ends
  // a call. After a failure, the run may be repeated on another device.
  hearth_custom_function compute;
} hearth_custom_operator;

// Registers an operator for the life of the process; its functions must stay loaded. Models that
// are compiled afterwards can use it. The structure and the name are copied. HEARTH_BAD_DATA: an
// operator of this name is registered already or is one of the library's own, the name is empty or
// too long, or there is no `prepare` or `compute`. Thread-safe.
HEARTH_EXPORT hearth_status hearth_custom_operator_register(const hearth_custom_operator* custom,
                                                            hearth_error** error);

// --- Models ---------------------------------------------------------------------------------

typedef struct hearth_model hearth_model;

// Reads the structure of a .tflite file and maps its weights. The file must not be written while
// the model or any object made from it lives. The file may also be a container, a .task file of
// MediaPipe or a .litertlm file, with one model in it.
HEARTH_EXPORT hearth_status hearth_model_load_file(const char* path, hearth_model** model,
                                                   hearth_error** error);
// Loads a model from `size` bytes. The library copies them; the caller may free them after the
// call. The bytes may also be those of a container with one model in it.
HEARTH_EXPORT hearth_status hearth_model_load_memory(const void* data, size_t size,
                                                     hearth_model** model, hearth_error** error);
// The same for a container with any number of models. `part` is the name of one, as
// hearth_container_describe tells it; NULL or "" = the only model. The model is used in place, and
// the file stays as it is. HEARTH_NOT_FOUND: there is no model with that name, or no name where
// there are several models; the message lists them. HEARTH_UNSUPPORTED: the part is compressed,
// encrypted or not aligned to 4 bytes, and has to be unpacked first.
HEARTH_EXPORT hearth_status hearth_model_load_file_part(const char* path, const char* part,
                                                        hearth_model** model, hearth_error** error);
HEARTH_EXPORT hearth_status hearth_model_load_memory_part(const void* data, size_t size,
                                                          const char* part, hearth_model** model,
                                                          hearth_error** error);
HEARTH_EXPORT void hearth_model_free(hearth_model* model);

// Entry points of the model. A file without signatures has one with the key "".
HEARTH_EXPORT size_t hearth_model_signature_count(const hearth_model* model);
// Returns NULL when the index is out of range.
HEARTH_EXPORT const char* hearth_model_signature_key(const hearth_model* model, size_t index);

// Describes the model as JSON (keys: docs/cli.md, `hearth inspect`): signatures, tensors,
// operations, weight bytes, and which device takes which operation, with which kernel, or why not.
HEARTH_EXPORT hearth_status hearth_model_inspect(const hearth_model* model, char** json,
                                                 hearth_error** error);
// Describes one signature as JSON: `key`, `problem`, `inputs`, `outputs` and `state_tensors`, which
// hearth_model_inspect has as well. Asks no device, and takes a fraction of the time.
// HEARTH_NOT_FOUND: there is no signature `index`.
HEARTH_EXPORT hearth_status hearth_model_signature_describe(const hearth_model* model, size_t index,
                                                            char** json, hearth_error** error);

// Tells as JSON what the model's file says about itself (TFLite's metadata; keys: docs/cli.md,
// `metadata` of `hearth inspect`): name, author, licence, what each input and output means and how
// to prepare it, and the files that are packed behind the model. All is empty for a file without.
HEARTH_EXPORT hearth_status hearth_model_metadata(const hearth_model* model, char** json,
                                                  hearth_error** error);
// The labels that the metadata has for output `output` of the first subgraph, one a line: those in
// the language `locale` ("en", "en-US"); NULL = the first ones. The caller frees them with
// hearth_string_free. HEARTH_NOT_FOUND: there are none.
HEARTH_EXPORT hearth_status hearth_model_labels(const hearth_model* model, size_t output,
                                                const char* locale, char** labels,
                                                hearth_error** error);
// The bytes of a file that is packed behind the model. They belong to the model and end with it.
// HEARTH_NOT_FOUND: there is none with that name. HEARTH_UNSUPPORTED: it cannot be unpacked.
HEARTH_EXPORT hearth_status hearth_model_packed_file(const hearth_model* model, const char* name,
                                                     const void** data, size_t* size,
                                                     hearth_error** error);

// Describes a container as JSON, without loading a model (keys: docs/cli.md, `hearth inspect` of a
// container): its metadata and the name, kind, place and size of each part. A file that is no
// container has the format "tflite" and no parts, whatever it holds. Errors as of
// hearth_model_load_file.
HEARTH_EXPORT hearth_status hearth_container_describe(const char* path, char** json,
                                                      hearth_error** error);

// --- Compilations ---------------------------------------------------------------------------

typedef enum hearth_preference {
  HEARTH_PREFER_LOW_POWER = 0,
  HEARTH_PREFER_FAST_SINGLE_ANSWER = 1,
  HEARTH_PREFER_SUSTAINED_SPEED = 2,
} hearth_preference;

typedef enum hearth_priority {
  HEARTH_PRIORITY_LOW = 90,
  HEARTH_PRIORITY_MEDIUM = 100,
  HEARTH_PRIORITY_HIGH = 110,
} hearth_priority;

// How a compilation uses the weight store, which keeps packed weights between starts and shares
// them among processes. A failure of the store never fails a compilation: the start report has the
// reason.
typedef enum hearth_cache_policy {
  HEARTH_CACHE_DEFAULT = 0,     // what HEARTH_STORE_MODE sets, else read and write
  HEARTH_CACHE_OFF = 1,         // only models of this process share packed weights
  HEARTH_CACHE_READ_ONLY = 2,   // the store is never written
  HEARTH_CACHE_READ_WRITE = 3,  // packed weights from the store are checked in the background
  HEARTH_CACHE_STRICT = 4,      // reads and writes; every byte is checked before it is used
} hearth_cache_policy;

// When a model is made ready. Just in time is for programs that want the first result soon: the
// compilation returns as soon as it is known that the model runs, the library packs weights in the
// background and in the first execution, and writes them for the next start after that. A start
// that finds all packed weights returns early in any case.
typedef enum hearth_preparation {
  HEARTH_PREPARE_DEFAULT = 0,  // what HEARTH_PREPARATION sets, else whole
  HEARTH_PREPARE_WHOLE = 1,    // before the compilation returns
  HEARTH_PREPARE_JUST_IN_TIME = 2,
} hearth_preparation;

// Whether kernels are chosen by measurement. A model starts with kernels that are good on most
// machines. After some tens of executions, the following executions measure other kernels, one step
// at a time, which may make them a little slower. Then the kernels that are fastest on this machine
// take over, without making an execution wait, and the next start of the model begins with them.
typedef enum hearth_tuning {
  HEARTH_TUNING_DEFAULT = 0,  // what HEARTH_TUNING sets, else on
  HEARTH_TUNING_ON = 1,
  HEARTH_TUNING_OFF = 2,
} hearth_tuning;

// How the caches of a language model lie in memory: the tensors with its keys and values, which are
// an input and an output of the same name.
typedef enum hearth_kv_layout {
  HEARTH_KV_AS_IN_FILE = 0,
  // What one token adds lies together where the model allows it: a cache [.., size, tokens] becomes
  // [.., tokens, size]. So a token changes few pages, and pages of earlier tokens can be shared.
  // hearth_compilation_input tells the shapes. Sums over tokens may be added in another order.
  HEARTH_KV_BY_TOKEN = 1,
} hearth_kv_layout;

// Length of NNAPI's cache token in bytes.
#define HEARTH_CACHE_TOKEN_BYTES 32

// A `device` that is named runs the whole model, or the compilation fails. "cpu", "gpu" and
// "accelerator", in upper or lower case, name all devices of that type: each operation goes to the
// one among them that takes it at the lowest cost. HEARTH_NOT_FOUND: there is no such device.
// Without a name, each operation goes to the device of any type that takes it at the lowest cost;
// when another device fails, at the compilation or in an execution, nnapi-reference runs the whole
// model or that execution instead, with a warning in the log. Lack of memory or time is a failure
// all the same.
//
// `cache_dir` turns on NNAPI's compilation caching (ANeuralNetworksCompilation_setCaching): devices
// save the prepared model in this folder, and the next start with the same token begins with it. As
// with NNAPI, the caller ensures that one token always means the same model contents. Each
// signature has cache files of its own under that token, and so has each choice of `shapes`. The
// weight store needs none of this.
//
// `shapes` compiles the model for other shapes of its inputs than the file has: another batch, a
// larger picture. Inputs that are not named keep theirs, with the default in place of unknown
// dimensions, so that all shapes of the compilation are known. The shapes behind the inputs are
// inferred again; a constant that holds the old batch or size, as in RESHAPE, follows where that is
// its only reading. The results for each element of a batch that was 1 in the file are those of a
// run for that element alone. The weights and what is packed of them are those of any other shape.
// HEARTH_NOT_FOUND: there is no input of this name; HEARTH_BAD_DATA: a wrong number of dimensions,
// a dimension of 0, or a shape that the model contradicts; HEARTH_UNSUPPORTED: an operation cannot
// follow, or its result might mean something else. The messages name operation, tensor and both
// shapes.
//
// `longest_step_ns` is for drivers in other processes: how long an execution may take, at most, for
// an operation, or for all of them where the driver tells no progress between operations. A driver
// that answers, but begins no operation for longer (and for 5 s at least), hangs: the execution
// fails with HEARTH_DEAD_OBJECT or, if it has a time limit, that long after it with
// HEARTH_MISSED_DEADLINE_TRANSIENT. Where it is not known, an execution without a time limit waits
// as long as the process answers.
//
// `outputs` names the outputs that are wanted. An execution has no other ones, those in the file's
// order, and what leads to none of them is neither prepared nor computed: the scores of a prompt's
// tokens, where only those of the last one are read. HEARTH_NOT_FOUND: there is no output of this
// name.
//
// The caller may free the options, and all that they point to, after the call.
typedef struct hearth_input_shape {
  size_t size;
  const char* name;            // of the input; NULL or "" = the only one
  const uint32_t* dimensions;  // `rank` of them, each at least 1
  size_t rank;
} hearth_input_shape;

typedef struct hearth_compile_options {
  size_t size;
  const char* signature;             // NULL = the first
  const char* device;                // NULL = all devices, as above
  int32_t preference;                // hearth_preference
  int32_t priority;                  // hearth_priority
  uint32_t threads;                  // 0 = what HEARTH_THREADS sets, else the device's choice
  int32_t cache;                     // hearth_cache_policy
  uint64_t max_activation_bytes;     // 0 = half of the machine's memory
  uint64_t timeout_ns;               // of the compilation; 0 = none
  const char* store;                 // folder of the weight store; NULL = what HEARTH_STORE sets
  uint64_t store_bytes;              // largest size of the store; 0 = what HEARTH_STORE_SIZE sets
  const char* weight_cache;          // one file to be used in place of the store; NULL = none
  int32_t preparation;               // hearth_preparation
  int32_t tuning;                    // hearth_tuning
  const char* cache_dir;             // folder for compilation caching; NULL = none
  const uint8_t* cache_token;        // HEARTH_CACHE_TOKEN_BYTES bytes; required with a cache_dir
  const hearth_input_shape* shapes;  // `shape_count` of them, all of the same size; NULL with 0
  size_t shape_count;
  int32_t kv_layout;           // hearth_kv_layout
  int32_t padding;             // 0
  uint64_t longest_step_ns;    // 0 = not known, as below
  const char* const* outputs;  // names of `output_count` outputs; NULL with 0 = all
  size_t output_count;
} hearth_compile_options;

// Sets `options` to the default values. `size` is the caller's sizeof(hearth_compile_options); the
// function writes no more bytes than that. Does nothing if `options` is NULL or `size` is too small
// for the field `size`.
HEARTH_EXPORT void hearth_compile_options_init(hearth_compile_options* options, size_t size);

// The default values as an initialiser.
#define HEARTH_COMPILE_OPTIONS_INIT  \
  {sizeof(hearth_compile_options),   \
   NULL,                             \
   NULL,                             \
   HEARTH_PREFER_FAST_SINGLE_ANSWER, \
   HEARTH_PRIORITY_MEDIUM,           \
   0,                                \
   HEARTH_CACHE_DEFAULT,             \
   0,                                \
   0,                                \
   NULL,                             \
   0,                                \
   NULL,                             \
   HEARTH_PREPARE_DEFAULT,           \
   HEARTH_TUNING_DEFAULT,            \
   NULL,                             \
   NULL,                             \
   NULL,                             \
   0,                                \
   HEARTH_KV_AS_IN_FILE,             \
   0,                                \
   0,                                \
   NULL,                             \
   0}

typedef enum hearth_start_state {
  HEARTH_START_COLD = 0,      // weights were packed and kept for the next start
  HEARTH_START_WARM = 1,      // packed weights were found
  HEARTH_START_UNCACHED = 2,  // weights were packed for this process only
} hearth_start_state;

// How a compilation started.
typedef struct hearth_start_report {
  size_t size;
  int32_t state;              // hearth_start_state
  const char* reason;         // why not warm; "" when warm
  double prepare_ms;          // opening the model and compiling it
  uint64_t packed_bytes;      // weights converted to the device's layout during this start
  uint64_t mapped_bytes;      // weights mapped in the device's layout
  uint64_t activation_bytes;  // intermediate results of one execution
  uint64_t shared_bytes;      // weights that another compilation of this process had packed
  uint64_t hashed_bytes;      // bytes of the model that were hashed to see whether it changed
  // Of a model with unknown dimensions: for how many shapes of its inputs it is prepared. The
  // shapes of default_dimensions are, and those of the last few executions. 0 for other models.
  uint32_t shapes;
} hearth_start_report;

typedef struct hearth_compilation hearth_compilation;

// Compiles one signature of the model, for the device that `options` names or for all devices.
// NULL options = the default values.
HEARTH_EXPORT hearth_status hearth_compile(const hearth_model* model,
                                           const hearth_compile_options* options,
                                           hearth_compilation** compilation, hearth_error** error);
// Compiles `count` signatures at once, on as many threads as `options` allow: for programs that use
// several signatures of a language model. `signatures` holds their keys, which replace the key in
// `options`; `compilations` has room for `count` handles. Either all are made or none.
HEARTH_EXPORT hearth_status hearth_compile_signatures(const hearth_model* model,
                                                      const hearth_compile_options* options,
                                                      const char* const* signatures, size_t count,
                                                      hearth_compilation** compilations,
                                                      hearth_error** error);
HEARTH_EXPORT void hearth_compilation_free(hearth_compilation* compilation);

// Tells as JSON how hearth_compile with the same arguments would start now: `state`, `reason`
// (which of the things that packed weights depend on has changed) and `mapped_bytes`, as in the
// start report. Does not pack, write or wait; reads the model once if its content is not known yet.
HEARTH_EXPORT hearth_status hearth_model_explain_start(const hearth_model* model,
                                                       const hearth_compile_options* options,
                                                       char** json, hearth_error** error);

// hearth_model_inspect with the inputs in the shapes of `options`, of which nothing else counts but
// `signature`: NULL or "" = all of them. A signature that cannot take the shapes says so in
// `problem`; if none can, the call fails as hearth_compile would for the first. NULL options = the
// default values.
HEARTH_EXPORT hearth_status hearth_model_inspect_shapes(const hearth_model* model,
                                                        const hearth_compile_options* options,
                                                        char** json, hearth_error** error);

// Tells as JSON what an NNAPI compilation, for the device of `options` or without a list of
// devices, would do with the cache files that ANeuralNetworksCompilation_setCaching names in
// `folder` for `token` (HEARTH_CACHE_TOKEN_BYTES bytes). The keys `state` and `parts` are those of
// `hearth cache explain --json`. Changes nothing.
HEARTH_EXPORT hearth_status hearth_model_explain_cache(const hearth_model* model,
                                                       const hearth_compile_options* options,
                                                       const char* folder, const uint8_t* token,
                                                       char** json, hearth_error** error);
// Lists the files of such a folder as JSON. The keys `sets` and `others` are those of
// `hearth cache ls --cache-dir --json`. Changes nothing.
HEARTH_EXPORT hearth_status hearth_cache_folder_describe(const char* folder, char** json,
                                                         hearth_error** error);

// The names of the devices that run the model or parts of it, with ", " between them.
HEARTH_EXPORT const char* hearth_compilation_device(const hearth_compilation* compilation);
HEARTH_EXPORT size_t hearth_compilation_input_count(const hearth_compilation* compilation);
HEARTH_EXPORT size_t hearth_compilation_output_count(const hearth_compilation* compilation);
// An index out of range is HEARTH_NOT_FOUND.
HEARTH_EXPORT hearth_status hearth_compilation_input(const hearth_compilation* compilation,
                                                     size_t index, hearth_tensor_info* info,
                                                     hearth_error** error);
HEARTH_EXPORT hearth_status hearth_compilation_output(const hearth_compilation* compilation,
                                                      size_t index, hearth_tensor_info* info,
                                                      hearth_error** error);
// Waits until a just-in-time compilation has packed all weights.
HEARTH_EXPORT hearth_status hearth_compilation_start_report(const hearth_compilation* compilation,
                                                            hearth_start_report* report,
                                                            hearth_error** error);
// The start report with its details (packed bytes by operation kind, …) as JSON.
HEARTH_EXPORT hearth_status hearth_compilation_start_report_json(
    const hearth_compilation* compilation, char** json, hearth_error** error);

// --- Executions -----------------------------------------------------------------------------

typedef struct hearth_execution hearth_execution;
typedef struct hearth_event hearth_event;

// Creates a context that runs a compilation any number of times. It holds the model's state tensors
// (an LSTM's memory), which keep their values from run to run.
HEARTH_EXPORT hearth_status hearth_execution_create(const hearth_compilation* compilation,
                                                    hearth_execution** execution,
                                                    hearth_error** error);
// Waits for a run in flight.
HEARTH_EXPORT void hearth_execution_free(hearth_execution* execution);

// Binds the caller's memory, which must stay valid, and the contents of inputs unchanged, while a
// run is in flight. Bindings stay for later runs. The library uses the memory in place if its
// address is a multiple of the tensor's `alignment` and at least `padding` more bytes follow it in
// the same page (kernels read whole vectors); so memory that ends where a page ends is copied,
// unless hearth_execution_promise_padding says that the next page can be read. Other memory gives
// the same results, but each run may copy it. A run may also copy an input whose memory an output
// shares, and an output that an operation writes past. hearth_statistics counts the bytes that the
// last run copied; a warning in the log tells of the first copy of 1 MiB or more for want of
// alignment or padding.
//
// `bytes` must be the tensor's exact size. `dimensions` (of the model's rank) sets the unknown
// dimensions; NULL with rank 0 = the default dimensions. HEARTH_BAD_DATA: index, dimensions or
// `bytes` do not match the model.
HEARTH_EXPORT hearth_status hearth_execution_set_input(hearth_execution* execution, size_t index,
                                                       const void* data, size_t bytes,
                                                       const uint32_t* dimensions, size_t rank,
                                                       hearth_error** error);
// Sets the strings of an input of HEARTH_TYPE_STRING, which only this function sets: `count` of
// them, in row-major order. They are copied. String i has lengths[i] bytes of any values; if
// `lengths` is NULL, each string ends with a zero. `dimensions` as above. HEARTH_BAD_DATA: `count`
// is not the number of elements, or the input has another type. HEARTH_OUT_OF_MEMORY: all strings
// of the process would take more than half of the machine's memory.
HEARTH_EXPORT hearth_status hearth_execution_set_input_strings(
    hearth_execution* execution, size_t index, const char* const* strings, const size_t* lengths,
    size_t count, const uint32_t* dimensions, size_t rank, hearth_error** error);
// Binds the caller's memory to an output, under the rules of hearth_execution_set_input. An input
// and an output may share memory, as for a cache that a model reads and writes: the run updates it
// in place if the model allows that, and otherwise copies the input first. `bytes` must be at least
// the tensor's size. If that size is not known before a run, a run into too small a buffer fails
// with HEARTH_OUTPUT_INSUFFICIENT_SIZE, and hearth_execution_output_shape then tells the size.
HEARTH_EXPORT hearth_status hearth_execution_set_output(hearth_execution* execution, size_t index,
                                                        void* data, size_t bytes,
                                                        hearth_error** error);

// With `is_promised` not 0, the caller promises for all memory that it binds from then on that the
// tensor's `padding` bytes behind it can be read, wherever a page ends. A run reads these bytes at
// most, and never uses what they hold. With 0, the default, the library assumes that of bytes in
// the same page only.
HEARTH_EXPORT hearth_status hearth_execution_promise_padding(hearth_execution* execution,
                                                             int is_promised, hearth_error** error);

// Runs in the calling thread. Every input and output must be bound, else HEARTH_BAD_STATE. After a
// failure the outputs' contents are unspecified and state tensors are unchanged. `timeout_ns` 0 =
// none.
HEARTH_EXPORT hearth_status hearth_execution_run(hearth_execution* execution, uint64_t timeout_ns,
                                                 hearth_error** error);
// Runs in a thread of the library. The caller frees the event. Until the event is done, all
// functions on the execution but hearth_execution_statistics and hearth_execution_free fail with
// HEARTH_BAD_STATE.
HEARTH_EXPORT hearth_status hearth_execution_start(hearth_execution* execution, uint64_t timeout_ns,
                                                   hearth_event** event, hearth_error** error);

// Dimensions of an output after a run that succeeded, or whose buffers were too small. Before such
// a run the model's dimensions if all are known, else HEARTH_BAD_STATE. *rank is the capacity of
// `dimensions` before the call and the output's rank after it. If the capacity is too small, the
// call fails with HEARTH_BAD_DATA and writes *rank, but no dimension.
HEARTH_EXPORT hearth_status hearth_execution_output_shape(const hearth_execution* execution,
                                                          size_t index, uint32_t* dimensions,
                                                          size_t* rank, hearth_error** error);

// The string for which an element of an output of HEARTH_TYPE_STRING stands after a run. `element`
// are its 8 bytes (a uint64_t); 0 is the empty string. *text has *bytes bytes of any values and a
// zero behind them, and belongs to the execution until its next run. Elements have no meaning but
// this one. HEARTH_NOT_FOUND: the last run has no such string. HEARTH_BAD_STATE: a run is in
// flight.
HEARTH_EXPORT hearth_status hearth_execution_string(const hearth_execution* execution,
                                                    uint64_t element, const char** text,
                                                    size_t* bytes, hearth_error** error);

// Sets the state tensors back to their initial values.
HEARTH_EXPORT hearth_status hearth_execution_reset_state(hearth_execution* execution,
                                                         hearth_error** error);

// Runs of one execution; all but `runs` describe the last run that succeeded.
typedef struct hearth_statistics {
  size_t size;
  uint64_t runs;          // that succeeded
  uint64_t last_ns;       // wall time inside the library
  uint64_t on_device_ns;  // as the device measured; UINT64_MAX = not measured
  uint64_t in_driver_ns;  // likewise
  uint64_t copied_bytes;  // of inputs and outputs: see hearth_execution_set_input
} hearth_statistics;

HEARTH_EXPORT hearth_status hearth_execution_statistics(const hearth_execution* execution,
                                                        hearth_statistics* statistics,
                                                        hearth_error** error);

// Waits until the run has ended and returns its result, the same at each call. Fails with
// HEARTH_MISSED_DEADLINE_TRANSIENT if `timeout_ns` (0 = no limit) passes first; the run may fail
// with that code, too, but hearth_event_is_done is then not 0.
HEARTH_EXPORT hearth_status hearth_event_wait(const hearth_event* event, uint64_t timeout_ns,
                                              hearth_error** error);
HEARTH_EXPORT int hearth_event_is_done(const hearth_event* event);
// Does not wait.
HEARTH_EXPORT void hearth_event_free(hearth_event* event);

#ifdef __cplusplus
}  // extern "C"
#endif
