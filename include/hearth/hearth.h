// SPDX-License-Identifier: Apache-2.0
// Hearth's C API: a small, stable ABI (C11 and C++). hearth.hpp wraps it for C++17.
//
// Rules that hold for every function here:
// - Handles are opaque and reference counted inside: they may be freed in any order, and what was
//   made from a handle stays usable after that handle was freed. Freeing NULL does nothing.
// - A function that can fail returns HEARTH_OK or an error code and takes `error` last. If `error`
//   is not NULL, *error becomes NULL when the function succeeds, and else an error object that the
//   caller frees (NULL where there is not even memory for that). Results behind other out-pointers
//   are written on success only, but for the rank of hearth_execution_output_shape.
// - Strings end with a zero byte and are UTF-8, but for names and keys that a model file has
//   otherwise. A returned `const char*` belongs to the handle it came from and lives as long as
//   that handle; a returned `char*` is freed with hearth_string_free.
// - Structures begin with `size`, which the caller sets to sizeof(structure). Fields are only ever
//   added at the end, and 0 in a new one means what libraries did that did not know it. A library
//   that reads a structure takes a larger one than its own (up to 4096 bytes) if all bytes behind
//   what it knows are zero, and else fails with HEARTH_BAD_DATA. One that fills a structure writes
//   what both know, and sets `size` to the number of bytes that it has filled; it leaves the rest
//   alone. Enumerations in structures are int32_t.
// - Models, compilations and events may be used by several threads at once. An execution is used
//   by one thread at a time.
// - No function throws, or aborts on bad arguments.
//
// What the library does in a process besides what it is asked for (docs/process.md has the
// details):
// - Signals. While files of a weight store or of a model are mapped, SIGBUS has a handler: a page
//   that somebody cut off such a file reads as zeros, and the run that read it is repeated or
//   fails. Everything else goes on to what the signal meant before. A program that loads models
//   from memory and compiles with HEARTH_CACHE_OFF has no such handler. No other is installed, and
//   no other signal is touched.
// - Threads. Loading a model, compiling, running and what follows these start threads, whose names
//   begin with "hearth-". They block all signals but those of their own faults, run under the
//   standard scheduling policy or SCHED_IDLE whatever their starter's is, and need not be waited
//   for.
// - exit() waits until what compilations have packed is written for the next start, but gives up
//   when nothing has moved for about ten seconds; hearth_set_work_at_exit and HEARTH_AT_EXIT=leave
//   decline it, hearth_flush does it earlier. Nothing is destroyed: other threads may be in any
//   function while the process exits. _exit() and quick_exit() write nothing.
// - fork(). A child may use the models, compilations and executions of its parent and make new
//   ones, whatever other threads of the parent were doing. A run that was in flight at the fork is
//   the parent's: in the child waiting for its event fails with HEARTH_OP_FAILED, and its execution
//   can only be freed, which waits for nothing. A fork waits until the library's locks are free.
// - dlclose() does not unload the library: its threads may be inside.
// - Environment. docs/settings.md has the table of the variables that are read, most of them again
//   at each compilation: no thread may call setenv() meanwhile. All count as unset in a process
//   with rights that its starter lacks (set-uid, set-gid, capabilities of the file); such a process
//   has no weight store of its own unless the compile options name one.
// - Standard error gets lines about what the library works around (warnings) and about failures of
//   NNAPI's functions; hearth_set_log_callback takes them. Standard output is not written to.
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

// Version of the library in use, for example "0.1.0", in builds of a checkout followed by a "+" and
// what names the commit. The macros are the version of this header.
HEARTH_EXPORT const char* hearth_version(void);
// The same as HEARTH_VERSION_NUMBER has it: 1002003 is 1.2.3.
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
  HEARTH_LOG_DEFAULT = -1,  // as HEARTH_LOG says, else warnings and errors
  HEARTH_LOG_TRACE = 0,
  HEARTH_LOG_DEBUG = 1,
  HEARTH_LOG_INFO = 2,
  HEARTH_LOG_WARN = 3,
  HEARTH_LOG_ERROR = 4,
  HEARTH_LOG_OFF = 5,  // nothing; no message has it
} hearth_log_level;

// `message` is one or more sentences without a line end, and is gone after the call.
typedef void (*hearth_log_callback)(hearth_log_level level, const char* message, void* user);

// From now on messages from `level` up go to `callback`, or, where it is NULL, to standard error:
// (HEARTH_LOG_DEFAULT, NULL, NULL) is the state in which a process begins. Thread-safe. The
// callback is called by one thread at a time, which may be one of the library's and may hold its
// locks: it must not wait for other threads that use the library, must not throw, and calls nothing
// of it but this function; what it makes the library log goes to standard error. When this returns,
// the callback before is not running and is not called again; only the very call from inside which
// it is replaced goes on. A child made by fork() has the callback, too. Drivers in libraries of
// their own and XNNPACK write to standard error themselves. HEARTH_BAD_DATA: there is no such
// level.
HEARTH_EXPORT hearth_status hearth_set_log_callback(int32_t level,  // hearth_log_level
                                                    hearth_log_callback callback, void* user,
                                                    hearth_error** error);

// Waits until what earlier compilations have packed is written for the next start. When
// `timeout_ns` passes before (0 = none), HEARTH_MISSED_DEADLINE_TRANSIENT, and it is written later.
// A file that cannot be written is no failure. A compilation just in time has packed everything
// when its start report can be had. Thread-safe.
HEARTH_EXPORT hearth_status hearth_flush(uint64_t timeout_ns, hearth_error** error);

// Whether exit() waits as hearth_flush does (not 0, the standard; for some ten seconds at most
// where nothing moves), in place of what HEARTH_AT_EXIT says. What is not written is packed again
// by the next start. Thread-safe.
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
  HEARTH_TYPE_BOOL = 12,  // one byte, 0 or 1
  HEARTH_TYPE_INT4 = 13,  // two elements in a byte, the first in the low half
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
  // `dimensions` with those that the model file was written with (often 1) for the unknown ones;
  // an input whose dimensions are left open at hearth_execution_set_input has these.
  const uint32_t* default_dimensions;
  // What hearth_execution_set_input and _set_output say of memory that is used in place.
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
  const char* name;  // unique; lives as long as the process, as all strings here do
  const char* version;
  int32_t type;            // hearth_device_type
  int64_t feature_level;   // NNAPI's
  const char* extensions;  // names separated by spaces
} hearth_device_info;

// Devices in the order in which a compilation without a device tries them. The list is made at the
// first call and does not change after it. Thread-safe.
HEARTH_EXPORT size_t hearth_device_count(void);
HEARTH_EXPORT hearth_status hearth_device_get(size_t index, hearth_device_info* info,
                                              hearth_error** error);

// --- Models ---------------------------------------------------------------------------------

typedef struct hearth_model hearth_model;

// Reads the structure of a .tflite file and maps its weights; the file must not be written while
// the model or anything made from it lives.
HEARTH_EXPORT hearth_status hearth_model_load_file(const char* path, hearth_model** model,
                                                   hearth_error** error);
// The same from memory. The bytes are copied; the caller may free them after the call.
HEARTH_EXPORT hearth_status hearth_model_load_memory(const void* data, size_t size,
                                                     hearth_model** model, hearth_error** error);
HEARTH_EXPORT void hearth_model_free(hearth_model* model);

// Entry points of the model. A file without signatures has one with the key "".
HEARTH_EXPORT size_t hearth_model_signature_count(const hearth_model* model);
// NULL when the index is out of range.
HEARTH_EXPORT const char* hearth_model_signature_key(const hearth_model* model, size_t index);

// Everything about the model as JSON (keys: docs/cli.md, `hearth inspect`): signatures, tensors,
// operations, which device takes which operation with which kernel and why not, weight bytes.
HEARTH_EXPORT hearth_status hearth_model_inspect(const hearth_model* model, char** json,
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

// What a compilation may do with the weight store, where packed weights are kept between starts and
// shared by processes. No failure of the store fails a compilation: the start report has the
// reason.
typedef enum hearth_cache_policy {
  HEARTH_CACHE_DEFAULT = 0,     // as HEARTH_STORE_MODE says, else read and write
  HEARTH_CACHE_OFF = 1,         // only models of this process share
  HEARTH_CACHE_READ_ONLY = 2,   // nothing is written
  HEARTH_CACHE_READ_WRITE = 3,  // what is found is checked in the background
  HEARTH_CACHE_STRICT = 4,      // the same, and every byte is checked before it is used
} hearth_cache_policy;

// When a model is made ready. Just in time is for programs that want the first result soon: a
// compilation returns as soon as it is known that the model runs, its weights are packed while the
// program goes on and in the first execution, and what is kept for the next start is written after
// that. Starts that find all packed weights return early in any case.
typedef enum hearth_preparation {
  HEARTH_PREPARE_DEFAULT = 0,  // as HEARTH_PREPARATION says, else whole
  HEARTH_PREPARE_WHOLE = 1,    // before the compilation returns
  HEARTH_PREPARE_JUST_IN_TIME = 2,
} hearth_preparation;

// Whether kernels are chosen by measuring. A model starts with those that are good on most
// machines. After some tens of executions the following ones are measured with others, one step at
// a time, which may make them a little slower; then those that are fastest on this machine take
// over, without making an execution wait, and the next start of the model begins with them.
typedef enum hearth_tuning {
  HEARTH_TUNING_DEFAULT = 0,  // as HEARTH_TUNING says, else on
  HEARTH_TUNING_ON = 1,
  HEARTH_TUNING_OFF = 2,
} hearth_tuning;

// The bytes of NNAPI's cache token.
#define HEARTH_CACHE_TOKEN_BYTES 32

// With a `device` that one runs the whole model, or the compilation fails. Without, each operation
// goes to the device that takes it at the lowest cost, and what fails on the others runs on
// nnapi-reference, the whole model or one execution, with a warning in the log; out of memory and
// out of time are failures all the same.
//
// `cache_dir` is NNAPI's compilation caching (ANeuralNetworksCompilation_setCaching): devices keep
// there what they make of the model and begin with it at the next start with the same token. That
// the token belongs to the model's contents is the caller's part, as NNAPI has it. Signatures other
// than the first are kept apart under the same token. The weight store needs none of this.
typedef struct hearth_compile_options {
  size_t size;
  const char* signature;          // NULL = the first
  const char* device;             // NULL = all devices, as below
  int32_t preference;             // hearth_preference
  int32_t priority;               // hearth_priority
  uint32_t threads;               // 0 = what HEARTH_THREADS says, else the device's choice
  int32_t cache;                  // hearth_cache_policy
  uint64_t max_activation_bytes;  // 0 = half of the machine's memory
  uint64_t timeout_ns;            // 0 = none
  const char* store;              // folder of the weight store; NULL = as HEARTH_STORE says
  uint64_t store_bytes;           // the most that it may take; 0 = as HEARTH_STORE_SIZE says
  const char* weight_cache;       // one file to be used in place of the store; NULL = none
  int32_t preparation;            // hearth_preparation
  int32_t tuning;                 // hearth_tuning
  const char* cache_dir;          // folder for compilation caching; NULL = none
  const uint8_t* cache_token;     // HEARTH_CACHE_TOKEN_BYTES; of a cache_dir
} hearth_compile_options;

// Sets `options` to the standard values; `size` is sizeof(hearth_compile_options) as the caller
// knows it, and no more is written. Does nothing for NULL, or a size that holds no `size`.
HEARTH_EXPORT void hearth_compile_options_init(hearth_compile_options* options, size_t size);

// The same as an initialiser.
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
   NULL}

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
  uint64_t hashed_bytes;      // of the model, to find out whether it changed
} hearth_start_report;

typedef struct hearth_compilation hearth_compilation;

// Makes a signature of the model ready on one device. `options` may be NULL.
HEARTH_EXPORT hearth_status hearth_compile(const hearth_model* model,
                                           const hearth_compile_options* options,
                                           hearth_compilation** compilation, hearth_error** error);
// The same for `count` signatures at once, on as many threads as `options` allow: for programs that
// use several signatures of a language model. `signatures` are their keys, which count in place of
// the options' one; `compilations` has room for as many. All of them or none are made.
HEARTH_EXPORT hearth_status hearth_compile_signatures(const hearth_model* model,
                                                      const hearth_compile_options* options,
                                                      const char* const* signatures, size_t count,
                                                      hearth_compilation** compilations,
                                                      hearth_error** error);
HEARTH_EXPORT void hearth_compilation_free(hearth_compilation* compilation);

// How hearth_compile with the same arguments would start now, as JSON: `state`, `reason` (which
// part of what packed weights depend on has changed) and `mapped_bytes`, as in the start report.
// Packs, writes and waits for nothing; a model whose content is not known yet is read once.
HEARTH_EXPORT hearth_status hearth_model_explain_start(const hearth_model* model,
                                                       const hearth_compile_options* options,
                                                       char** json, hearth_error** error);

// What a compilation through NNAPI, with the device of `options` or without a list of devices,
// would do with the files that ANeuralNetworksCompilation_setCaching names in `folder` for `token`,
// as JSON: `state` and `parts` as `hearth cache explain --json` has them. Changes nothing.
HEARTH_EXPORT hearth_status hearth_model_explain_cache(const hearth_model* model,
                                                       const hearth_compile_options* options,
                                                       const char* folder, const uint8_t* token,
                                                       char** json, hearth_error** error);
// What such a folder holds, as JSON: `sets` and `others` as `hearth cache ls --cache-dir --json`
// has them. Changes nothing.
HEARTH_EXPORT hearth_status hearth_cache_folder_describe(const char* folder, char** json,
                                                         hearth_error** error);

HEARTH_EXPORT const char* hearth_compilation_device(const hearth_compilation* compilation);
HEARTH_EXPORT size_t hearth_compilation_input_count(const hearth_compilation* compilation);
HEARTH_EXPORT size_t hearth_compilation_output_count(const hearth_compilation* compilation);
HEARTH_EXPORT hearth_status hearth_compilation_input(const hearth_compilation* compilation,
                                                     size_t index, hearth_tensor_info* info,
                                                     hearth_error** error);
HEARTH_EXPORT hearth_status hearth_compilation_output(const hearth_compilation* compilation,
                                                      size_t index, hearth_tensor_info* info,
                                                      hearth_error** error);
HEARTH_EXPORT hearth_status hearth_compilation_start_report(const hearth_compilation* compilation,
                                                            hearth_start_report* report,
                                                            hearth_error** error);
// The report with its details (packed bytes by operation kind, …) as JSON.
HEARTH_EXPORT hearth_status hearth_compilation_start_report_json(
    const hearth_compilation* compilation, char** json, hearth_error** error);

// --- Executions -----------------------------------------------------------------------------

typedef struct hearth_execution hearth_execution;
typedef struct hearth_event hearth_event;

// One context that runs a compilation again and again. It holds the model's state tensors (an
// LSTM's memory), which keep their values from run to run.
HEARTH_EXPORT hearth_status hearth_execution_create(const hearth_compilation* compilation,
                                                    hearth_execution** execution,
                                                    hearth_error** error);
// Waits for a run in flight.
HEARTH_EXPORT void hearth_execution_free(hearth_execution* execution);

// Binds the caller's memory. It must stay valid, and the contents of inputs unchanged, while a run
// is in flight. Bindings stay for later runs. Memory is used in place if its address is a multiple
// of the tensor's `alignment` and at least `padding` more bytes lie behind its end in the same page
// (kernels read whole vectors). Other memory is used with the same results, but each run may copy
// it; so it may with an input whose memory an output shares, and with an output that an operation
// writes past. hearth_statistics tells how many bytes the last run copied. `bytes` must be the
// tensor's exact size. `dimensions` (of the model's rank) gives the unknown ones; NULL with rank 0
// = the default dimensions.
HEARTH_EXPORT hearth_status hearth_execution_set_input(hearth_execution* execution, size_t index,
                                                       const void* data, size_t bytes,
                                                       const uint32_t* dimensions, size_t rank,
                                                       hearth_error** error);
// The memory may be that of an input, as for a cache that a model reads and writes: it is then
// updated in place where the model allows it, and the input is copied first where it does not.
// `bytes` must be at least the tensor's size; where that is not known before a run, a run into too
// small a buffer fails with HEARTH_OUTPUT_INSUFFICIENT_SIZE and hearth_execution_output_shape then
// tells what is needed.
HEARTH_EXPORT hearth_status hearth_execution_set_output(hearth_execution* execution, size_t index,
                                                        void* data, size_t bytes,
                                                        hearth_error** error);

// Runs in the calling thread. Every input and output must be bound. After a failure the outputs
// hold anything and state tensors what they held before. `timeout_ns` 0 = none.
HEARTH_EXPORT hearth_status hearth_execution_run(hearth_execution* execution, uint64_t timeout_ns,
                                                 hearth_error** error);
// Runs in a thread of the library. Until the event is done, the execution refuses everything but
// hearth_execution_statistics and hearth_execution_free with HEARTH_BAD_STATE.
HEARTH_EXPORT hearth_status hearth_execution_start(hearth_execution* execution, uint64_t timeout_ns,
                                                   hearth_event** event, hearth_error** error);

// Dimensions of an output after a run that succeeded, or whose buffers were too small. *rank holds
// the room in `dimensions` before the call and the rank after it. When the room is too small the
// call fails with HEARTH_BAD_DATA and writes *rank nevertheless, but no dimension.
HEARTH_EXPORT hearth_status hearth_execution_output_shape(const hearth_execution* execution,
                                                          size_t index, uint32_t* dimensions,
                                                          size_t* rank, hearth_error** error);

// Sets the state tensors back to their initial values.
HEARTH_EXPORT hearth_status hearth_execution_reset_state(hearth_execution* execution,
                                                         hearth_error** error);

typedef struct hearth_statistics {
  size_t size;
  uint64_t runs;          // that succeeded
  uint64_t last_ns;       // of the last one: wall time inside the library
  uint64_t on_device_ns;  // as the device measured; UINT64_MAX = not measured
  uint64_t in_driver_ns;
  uint64_t copied_bytes;  // of inputs and outputs, by the last one: see hearth_execution_set_input
} hearth_statistics;

HEARTH_EXPORT hearth_status hearth_execution_statistics(const hearth_execution* execution,
                                                        hearth_statistics* statistics,
                                                        hearth_error** error);

// Waits until the run ended and returns its result, as often as asked. When `timeout_ns` passes
// before (0 = wait for ever), HEARTH_MISSED_DEADLINE_TRANSIENT while hearth_event_is_done is 0.
HEARTH_EXPORT hearth_status hearth_event_wait(const hearth_event* event, uint64_t timeout_ns,
                                              hearth_error** error);
HEARTH_EXPORT int hearth_event_is_done(const hearth_event* event);
// Does not wait.
HEARTH_EXPORT void hearth_event_free(hearth_event* event);

#ifdef __cplusplus
}  // extern "C"
#endif
