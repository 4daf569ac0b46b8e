/* SPDX-License-Identifier: Apache-2.0 */
/* AHardwareBuffer: memory that processes and devices share by handle. Binary compatible with the
   part of the Android NDK's header of the same name that NNAPI clients use. On Linux a buffer is
   shared memory (memfd) in linear layout. Functions are thread-safe; those that return int return 0
   or a negative errno value. */
#ifndef HEARTH_ANDROID_HARDWARE_BUFFER_H
#define HEARTH_ANDROID_HARDWARE_BUFFER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Layouts of pixels. A BLOB has `width` bytes and height 1. */
enum AHardwareBuffer_Format {
  AHARDWAREBUFFER_FORMAT_R8G8B8A8_UNORM = 1,
  AHARDWAREBUFFER_FORMAT_R8G8B8X8_UNORM = 2,
  AHARDWAREBUFFER_FORMAT_R8G8B8_UNORM = 3,
  AHARDWAREBUFFER_FORMAT_R5G6B5_UNORM = 4,
  AHARDWAREBUFFER_FORMAT_R16G16B16A16_FLOAT = 0x16,
  AHARDWAREBUFFER_FORMAT_BLOB = 0x21,
  AHARDWAREBUFFER_FORMAT_Y8Cb8Cr8_420 = 0x23,
  AHARDWAREBUFFER_FORMAT_R10G10B10A2_UNORM = 0x2b,
  AHARDWAREBUFFER_FORMAT_D16_UNORM = 0x30,
  AHARDWAREBUFFER_FORMAT_D24_UNORM = 0x31,
  AHARDWAREBUFFER_FORMAT_D24_UNORM_S8_UINT = 0x32,
  AHARDWAREBUFFER_FORMAT_D32_FLOAT = 0x33,
  AHARDWAREBUFFER_FORMAT_D32_FLOAT_S8_UINT = 0x34,
  AHARDWAREBUFFER_FORMAT_S8_UINT = 0x35,
  AHARDWAREBUFFER_FORMAT_YCbCr_P010 = 0x36,
  AHARDWAREBUFFER_FORMAT_R8_UNORM = 0x38
};

/* How a buffer is used, joined by `|`. AHardwareBuffer_lock checks the CPU part. */
#define AHARDWAREBUFFER_USAGE_CPU_READ_NEVER UINT64_C(0)
#define AHARDWAREBUFFER_USAGE_CPU_READ_RARELY UINT64_C(0x2)
#define AHARDWAREBUFFER_USAGE_CPU_READ_OFTEN UINT64_C(0x3)
#define AHARDWAREBUFFER_USAGE_CPU_READ_MASK UINT64_C(0xf)
#define AHARDWAREBUFFER_USAGE_CPU_WRITE_NEVER UINT64_C(0)
#define AHARDWAREBUFFER_USAGE_CPU_WRITE_RARELY UINT64_C(0x20)
#define AHARDWAREBUFFER_USAGE_CPU_WRITE_OFTEN UINT64_C(0x30)
#define AHARDWAREBUFFER_USAGE_CPU_WRITE_MASK UINT64_C(0xf0)
#define AHARDWAREBUFFER_USAGE_GPU_SAMPLED_IMAGE UINT64_C(0x100)
#define AHARDWAREBUFFER_USAGE_GPU_FRAMEBUFFER UINT64_C(0x200)
#define AHARDWAREBUFFER_USAGE_GPU_COLOR_OUTPUT AHARDWAREBUFFER_USAGE_GPU_FRAMEBUFFER
#define AHARDWAREBUFFER_USAGE_COMPOSER_OVERLAY UINT64_C(0x800)
#define AHARDWAREBUFFER_USAGE_PROTECTED_CONTENT UINT64_C(0x4000)
#define AHARDWAREBUFFER_USAGE_VIDEO_ENCODE UINT64_C(0x10000)
#define AHARDWAREBUFFER_USAGE_SENSOR_DIRECT_DATA UINT64_C(0x800000)
#define AHARDWAREBUFFER_USAGE_GPU_DATA_BUFFER UINT64_C(0x1000000)
#define AHARDWAREBUFFER_USAGE_GPU_CUBE_MAP UINT64_C(0x2000000)
#define AHARDWAREBUFFER_USAGE_GPU_MIPMAP_COMPLETE UINT64_C(0x4000000)

typedef struct AHardwareBuffer_Desc {
  uint32_t width;  /* pixels; bytes of a BLOB */
  uint32_t height; /* pixels; 1 for a BLOB */
  uint32_t layers; /* 1 unless the buffer is an array of images */
  uint32_t format; /* an AHardwareBuffer_Format */
  uint64_t usage;  /* AHARDWAREBUFFER_USAGE_* */
  uint32_t stride; /* pixels from row to row; an answer of describe, ignored by allocate */
  uint32_t rfu0;   /* 0 */
  uint64_t rfu1;   /* 0 */
} AHardwareBuffer_Desc;

typedef struct AHardwareBuffer AHardwareBuffer;

/* Part of an image, in pixels; right and bottom are behind the last ones. */
typedef struct ARect {
  int32_t left;
  int32_t top;
  int32_t right;
  int32_t bottom;
} ARect;

/* Allocates a buffer of zeros with one reference, which the caller owns. -EINVAL for a null pointer
   or an impossible description, -ENOMEM when there is no memory. */
int AHardwareBuffer_allocate(const AHardwareBuffer_Desc* desc, AHardwareBuffer** outBuffer);
/* Adds a reference. */
void AHardwareBuffer_acquire(AHardwareBuffer* buffer);
/* Drops a reference; the last one frees the buffer. Null is allowed. */
void AHardwareBuffer_release(AHardwareBuffer* buffer);
/* The description with which the buffer was made, stride filled in; zeros for a null buffer. */
void AHardwareBuffer_describe(const AHardwareBuffer* buffer, AHardwareBuffer_Desc* outDesc);
/* Waits until `fence` is readable (-1: no fence) and closes it, then gives the address of the first
   byte. `usage` may have only CPU bits, and only for access that the buffer was allocated for
   (-EINVAL otherwise). `rect` must lie inside the buffer; null means all of it. Several locks may
   be held at once. */
int AHardwareBuffer_lock(AHardwareBuffer* buffer, uint64_t usage, int32_t fence, const ARect* rect,
                         void** outVirtualAddress);
/* Ends a lock. Sets `fence`, if not null, to -1: all writes are visible when the call returns. */
int AHardwareBuffer_unlock(AHardwareBuffer* buffer, int32_t* fence);
/* Sends the buffer's handle through a connected Unix socket; the peer receives the same memory. */
int AHardwareBuffer_sendHandleToUnixSocket(const AHardwareBuffer* buffer, int socketFd);
/* Receives a buffer that AHardwareBuffer_sendHandleToUnixSocket sent, with one reference. Blocks
   as the socket does. -EINVAL for a message that is no buffer, or whose memory is too small. */
int AHardwareBuffer_recvHandleFromUnixSocket(int socketFd, AHardwareBuffer** outBuffer);

#ifdef __cplusplus
}
#endif

#endif /* HEARTH_ANDROID_HARDWARE_BUFFER_H */
