// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Errors: each thread's last one, names and explanations.
//
// The idea: a failed call leaves its code with the thread until it is read; a later success does not clear it. Locking:
// none for names; the last error belongs to its thread.
#include "sim/api/error.h"

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/base/thread.h"

cudaError_t cudaGetLastError(void) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGetLastError);
  if (code == cudaSuccess) {
    code = gcap_sim_thread()->last_error;
    gcap_sim_thread()->last_error = cudaSuccess;
    return gcap_sim_leave_quietly(code);
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaPeekAtLastError(void) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaPeekAtLastError);
  return gcap_sim_leave(code == cudaSuccess ? gcap_sim_thread()->last_error : code);
}

const char* gcap_sim_error_name(cudaError_t error) {
  switch (error) {
#define NAME(code) \
  case code: return #code
    NAME(cudaSuccess);
    NAME(cudaErrorInvalidValue);
    NAME(cudaErrorMemoryAllocation);
    NAME(cudaErrorInitializationError);
    NAME(cudaErrorCudartUnloading);
    NAME(cudaErrorProfilerDisabled);
    NAME(cudaErrorProfilerNotInitialized);
    NAME(cudaErrorProfilerAlreadyStarted);
    NAME(cudaErrorProfilerAlreadyStopped);
    NAME(cudaErrorInvalidConfiguration);
    NAME(cudaErrorInvalidPitchValue);
    NAME(cudaErrorInvalidSymbol);
    NAME(cudaErrorInvalidHostPointer);
    NAME(cudaErrorInvalidDevicePointer);
    NAME(cudaErrorInvalidTexture);
    NAME(cudaErrorInvalidTextureBinding);
    NAME(cudaErrorInvalidChannelDescriptor);
    NAME(cudaErrorInvalidMemcpyDirection);
    NAME(cudaErrorAddressOfConstant);
    NAME(cudaErrorTextureFetchFailed);
    NAME(cudaErrorTextureNotBound);
    NAME(cudaErrorSynchronizationError);
    NAME(cudaErrorInvalidFilterSetting);
    NAME(cudaErrorInvalidNormSetting);
    NAME(cudaErrorMixedDeviceExecution);
    NAME(cudaErrorNotYetImplemented);
    NAME(cudaErrorMemoryValueTooLarge);
    NAME(cudaErrorStubLibrary);
    NAME(cudaErrorInsufficientDriver);
    NAME(cudaErrorCallRequiresNewerDriver);
    NAME(cudaErrorInvalidSurface);
    NAME(cudaErrorDuplicateVariableName);
    NAME(cudaErrorDuplicateTextureName);
    NAME(cudaErrorDuplicateSurfaceName);
    NAME(cudaErrorDevicesUnavailable);
    NAME(cudaErrorIncompatibleDriverContext);
    NAME(cudaErrorMissingConfiguration);
    NAME(cudaErrorPriorLaunchFailure);
    NAME(cudaErrorLaunchMaxDepthExceeded);
    NAME(cudaErrorLaunchFileScopedTex);
    NAME(cudaErrorLaunchFileScopedSurf);
    NAME(cudaErrorSyncDepthExceeded);
    NAME(cudaErrorLaunchPendingCountExceeded);
    NAME(cudaErrorInvalidDeviceFunction);
    NAME(cudaErrorNoDevice);
    NAME(cudaErrorInvalidDevice);
    NAME(cudaErrorDeviceNotLicensed);
    NAME(cudaErrorSoftwareValidityNotEstablished);
    NAME(cudaErrorStartupFailure);
    NAME(cudaErrorInvalidKernelImage);
    NAME(cudaErrorDeviceUninitialized);
    NAME(cudaErrorMapBufferObjectFailed);
    NAME(cudaErrorUnmapBufferObjectFailed);
    NAME(cudaErrorArrayIsMapped);
    NAME(cudaErrorAlreadyMapped);
    NAME(cudaErrorNoKernelImageForDevice);
    NAME(cudaErrorAlreadyAcquired);
    NAME(cudaErrorNotMapped);
    NAME(cudaErrorNotMappedAsArray);
    NAME(cudaErrorNotMappedAsPointer);
    NAME(cudaErrorECCUncorrectable);
    NAME(cudaErrorUnsupportedLimit);
    NAME(cudaErrorDeviceAlreadyInUse);
    NAME(cudaErrorPeerAccessUnsupported);
    NAME(cudaErrorInvalidPtx);
    NAME(cudaErrorInvalidGraphicsContext);
    NAME(cudaErrorNvlinkUncorrectable);
    NAME(cudaErrorJitCompilerNotFound);
    NAME(cudaErrorUnsupportedPtxVersion);
    NAME(cudaErrorJitCompilationDisabled);
    NAME(cudaErrorUnsupportedExecAffinity);
    NAME(cudaErrorUnsupportedDevSideSync);
    NAME(cudaErrorContained);
    NAME(cudaErrorInvalidSource);
    NAME(cudaErrorFileNotFound);
    NAME(cudaErrorSharedObjectSymbolNotFound);
    NAME(cudaErrorSharedObjectInitFailed);
    NAME(cudaErrorOperatingSystem);
    NAME(cudaErrorInvalidResourceHandle);
    NAME(cudaErrorIllegalState);
    NAME(cudaErrorLossyQuery);
    NAME(cudaErrorSymbolNotFound);
    NAME(cudaErrorNotReady);
    NAME(cudaErrorIllegalAddress);
    NAME(cudaErrorLaunchOutOfResources);
    NAME(cudaErrorLaunchTimeout);
    NAME(cudaErrorLaunchIncompatibleTexturing);
    NAME(cudaErrorPeerAccessAlreadyEnabled);
    NAME(cudaErrorPeerAccessNotEnabled);
    NAME(cudaErrorSetOnActiveProcess);
    NAME(cudaErrorContextIsDestroyed);
    NAME(cudaErrorAssert);
    NAME(cudaErrorTooManyPeers);
    NAME(cudaErrorHostMemoryAlreadyRegistered);
    NAME(cudaErrorHostMemoryNotRegistered);
    NAME(cudaErrorHardwareStackError);
    NAME(cudaErrorIllegalInstruction);
    NAME(cudaErrorMisalignedAddress);
    NAME(cudaErrorInvalidAddressSpace);
    NAME(cudaErrorInvalidPc);
    NAME(cudaErrorLaunchFailure);
    NAME(cudaErrorCooperativeLaunchTooLarge);
    NAME(cudaErrorTensorMemoryLeak);
    NAME(cudaErrorNotPermitted);
    NAME(cudaErrorNotSupported);
    NAME(cudaErrorSystemNotReady);
    NAME(cudaErrorSystemDriverMismatch);
    NAME(cudaErrorCompatNotSupportedOnDevice);
    NAME(cudaErrorMpsConnectionFailed);
    NAME(cudaErrorMpsRpcFailure);
    NAME(cudaErrorMpsServerNotReady);
    NAME(cudaErrorMpsMaxClientsReached);
    NAME(cudaErrorMpsMaxConnectionsReached);
    NAME(cudaErrorMpsClientTerminated);
    NAME(cudaErrorCdpNotSupported);
    NAME(cudaErrorCdpVersionMismatch);
    NAME(cudaErrorStreamCaptureUnsupported);
    NAME(cudaErrorStreamCaptureInvalidated);
    NAME(cudaErrorStreamCaptureMerge);
    NAME(cudaErrorStreamCaptureUnmatched);
    NAME(cudaErrorStreamCaptureUnjoined);
    NAME(cudaErrorStreamCaptureIsolation);
    NAME(cudaErrorStreamCaptureImplicit);
    NAME(cudaErrorCapturedEvent);
    NAME(cudaErrorStreamCaptureWrongThread);
    NAME(cudaErrorTimeout);
    NAME(cudaErrorGraphExecUpdateFailure);
    NAME(cudaErrorExternalDevice);
    NAME(cudaErrorInvalidClusterSize);
    NAME(cudaErrorFunctionNotLoaded);
    NAME(cudaErrorInvalidResourceType);
    NAME(cudaErrorInvalidResourceConfiguration);
    NAME(cudaErrorUnknown);
    NAME(cudaErrorApiFailureBase);
#undef NAME
  }
  return "unrecognized error code";
}

const char* cudaGetErrorName(cudaError_t error) {
  (void)gcap_sim_enter(GCAP_SIM_API_cudaGetErrorName);
  gcap_sim_leave_quietly(cudaSuccess);
  return gcap_sim_error_name(error);
}

static const char* explanation_of(cudaError_t error) {
  static const struct {
    cudaError_t code;
    const char* text;
  } table[] = {
      {cudaSuccess, "no error"},
      {cudaErrorInvalidValue, "an argument is outside of what the function takes"},
      {cudaErrorMemoryAllocation, "the device has no memory left for the request"},
      {cudaErrorInvalidConfiguration, "the launch asks for more than a device offers"},
      {cudaErrorInvalidMemcpyDirection, "the kind of copy is none of those that exist"},
      {cudaErrorInsufficientDriver, "the driver is older than the runtime"},
      {cudaErrorInvalidDeviceFunction,
       "the function has no code for this device; on the simulator: no twin is registered"},
      {cudaErrorNoDevice, "there is no device"},
      {cudaErrorInvalidDevice, "the device number is out of range"},
      {cudaErrorOperatingSystem, "the operating system refused a request"},
      {cudaErrorInvalidResourceHandle, "the handle is not valid"},
      {cudaErrorIllegalState, "the object is not in a state that allows the call"},
      {cudaErrorLossyQuery, "the answer would leave out data of edges"},
      {cudaErrorNotReady, "the work is not finished yet"},
      {cudaErrorIllegalAddress, "a kernel touched memory that it may not"},
      {cudaErrorLaunchFailure, "a kernel failed"},
      {cudaErrorNotPermitted, "the call is not allowed here"},
      {cudaErrorNotSupported, "the operation is not supported"},
      {cudaErrorStreamCaptureUnsupported, "the call is not allowed while the stream captures"},
      {cudaErrorStreamCaptureInvalidated, "an earlier error made the capture invalid"},
      {cudaErrorStreamCaptureMerge, "the call would have merged two captures"},
      {cudaErrorStreamCaptureUnmatched, "the capture did not begin on this stream"},
      {cudaErrorStreamCaptureUnjoined, "the capture has a fork with work that was not joined"},
      {cudaErrorStreamCaptureIsolation, "the capture would depend on work outside of it"},
      {cudaErrorStreamCaptureImplicit, "the call would order the capture with the legacy stream"},
      {cudaErrorCapturedEvent, "the event was last recorded in a capture"},
      {cudaErrorStreamCaptureWrongThread, "the capture began on another thread"},
      {cudaErrorTimeout, "a wait ran out of time"},
      {cudaErrorGraphExecUpdateFailure, "the graph cannot be updated in this way"},
      {cudaErrorUnknown, "the cause is not known"},
  };
  for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); ++i) {
    if (table[i].code == error) return table[i].text;
  }
  // The rest are codes that the simulator never gives of itself: their names say what there is to say.
  return gcap_sim_error_name(error);
}

const char* cudaGetErrorString(cudaError_t error) {
  (void)gcap_sim_enter(GCAP_SIM_API_cudaGetErrorString);
  gcap_sim_leave_quietly(cudaSuccess);
  return explanation_of(error);
}
