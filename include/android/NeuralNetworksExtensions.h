/* SPDX-License-Identifier: Apache-2.0 */
/* Extensions of the Neural Networks API: operand and operation types that a device brings under a
   name of its own. Binary compatible with Android's header of the same name. Types of an extension
   are (prefix << 16) | code, where the runtime chooses the prefix for each name at its first use.
   Errors and thread safety are those of NeuralNetworks.h. */
#ifndef HEARTH_ANDROID_NEURAL_NETWORKS_EXTENSIONS_H
#define HEARTH_ANDROID_NEURAL_NETWORKS_EXTENSIONS_H

#include "NeuralNetworks.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the device has the extension of this name. */
int ANeuralNetworksDevice_getExtensionSupport(const ANeuralNetworksDevice* device,
                                              const char* extensionName,
                                              bool* isExtensionSupported);
/* The operand type, for ANeuralNetworksOperandType, of a code of the extension. Any name is
   accepted; addOperand refuses a type that no device knows, or two devices differently. The scale
   and the zero point of such an operand are 0, except in the extension hearth.tflite. */
int ANeuralNetworksModel_getExtensionOperandType(ANeuralNetworksModel* model,
                                                 const char* extensionName,
                                                 uint16_t operandCodeWithinExtension,
                                                 int32_t* type);
/* The operation type of a code of the extension. Compiling a model fails with BAD_DATA if no device
   has the operation. */
int ANeuralNetworksModel_getExtensionOperationType(ANeuralNetworksModel* model,
                                                   const char* extensionName,
                                                   uint16_t operationCodeWithinExtension,
                                                   ANeuralNetworksOperationType* type);
/* Sets the parameters that the extension defines for an operand of its type; they are copied, and
   the driver checks them. BAD_DATA for an operand of another type, and for 0 bytes. */
int ANeuralNetworksModel_setOperandExtensionData(ANeuralNetworksModel* model, int32_t index,
                                                 const void* data, size_t length);
/* Attributes for the device. No device here knows an attribute, so both fail with BAD_DATA for
   every name. Since feature level 8. */
int ANeuralNetworksCompilation_addExtensionAttribute(ANeuralNetworksCompilation* compilation,
                                                     const char* extensionName,
                                                     uint16_t attributeCodeWithinExtension,
                                                     const void* data, size_t length);
int ANeuralNetworksExecution_addExtensionAttribute(ANeuralNetworksExecution* execution,
                                                   const char* extensionName,
                                                   uint16_t attributeCodeWithinExtension,
                                                   const void* data, size_t length);

#ifdef __cplusplus
}
#endif

#endif /* HEARTH_ANDROID_NEURAL_NETWORKS_EXTENSIONS_H */
