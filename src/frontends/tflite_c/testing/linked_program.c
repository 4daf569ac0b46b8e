// SPDX-License-Identifier: Apache-2.0
// A program that was linked against another library with the SONAME and the symbol version of
// TensorFlow Lite's C library, and starts with Hearth's in its place.
#include <stdio.h>
#include <string.h>

// Its own declarations, as in the public headers.
typedef struct TfLiteModel TfLiteModel;
typedef struct TfLiteInterpreter TfLiteInterpreter;
typedef struct TfLiteInterpreterOptions TfLiteInterpreterOptions;
typedef struct TfLiteTensor TfLiteTensor;
extern const char* TfLiteVersion(void);
extern TfLiteModel* TfLiteModelCreateFromFile(const char* path);
extern void TfLiteModelDelete(TfLiteModel* model);
extern TfLiteInterpreter* TfLiteInterpreterCreate(const TfLiteModel* model,
                                                  const TfLiteInterpreterOptions* options);
extern void TfLiteInterpreterDelete(TfLiteInterpreter* interpreter);
extern int TfLiteInterpreterAllocateTensors(TfLiteInterpreter* interpreter);
extern int TfLiteInterpreterInvoke(TfLiteInterpreter* interpreter);
extern TfLiteTensor* TfLiteInterpreterGetInputTensor(const TfLiteInterpreter* interpreter, int i);
extern void* TfLiteTensorData(const TfLiteTensor* tensor);

int main(int count, char** words) {
  if (count != 2) return 2;
  if (strcmp(TfLiteVersion(), "2.17.1") != 0) {
    printf("The version is %s.\n", TfLiteVersion());
    return 1;
  }
  TfLiteModel* model = TfLiteModelCreateFromFile(words[1]);
  TfLiteInterpreter* interpreter = TfLiteInterpreterCreate(model, NULL);
  TfLiteModelDelete(model);
  if (interpreter == NULL || TfLiteInterpreterAllocateTensors(interpreter) != 0 ||
      TfLiteTensorData(TfLiteInterpreterGetInputTensor(interpreter, 0)) == NULL ||
      TfLiteInterpreterInvoke(interpreter) != 0)
    return 1;
  TfLiteInterpreterDelete(interpreter);
  return 0;
}
