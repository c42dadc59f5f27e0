// ort_call.h - errors between ONNX Runtime, whose functions return them as objects, and Hone, whose
// functions return hone::Status. No exception may leave a function that ONNX Runtime calls.
#pragma once

#include <exception>
#include <string>

#include "hone/base/status.h"

#include "ort_api.h"

namespace hone::ort {

// Returns what a function of ONNX Runtime said, and releases its object.
[[nodiscard]] inline Status status_of(const OrtApi& api, OrtStatus* status) {
  if (status == nullptr) return ok_status();
  Status result(Code::kInternal, api.status_message(status));
  api.release_status(status);
  return result;
}

[[nodiscard]] inline OrtStatus* to_ort(const OrtApi& api, const Status& status) {
  if (status.ok()) return nullptr;
  OrtCode code = OrtCode::kEpFail;
  if (status.code() == Code::kInvalid) code = OrtCode::kInvalidArgument;
  if (status.code() == Code::kUnsupported) code = OrtCode::kNotImplemented;
  return api.create_status(code, ("Hone: " + status.message()).c_str());
}

// Returns what `work`, which returns a Status, says to ONNX Runtime.
template <typename Work>
[[nodiscard]] OrtStatus* guarded(const OrtApi& api, const Work& work) {
  try {
    return to_ort(api, work());
  } catch (const std::exception& exception) {
    return api.create_status(OrtCode::kEpFail, exception.what());
  }
}

inline void log(const OrtApi& api, const OrtLogger* logger, OrtSeverity severity,
                const std::string& message) {
  const std::string text = "Hone: " + message;
  (void)status_of(api, api.log_message(logger, severity, text.c_str(), __FILE__, __LINE__, "log"));
}

}  // namespace hone::ort

// Returns from a function with a hone::Status or hone::Result if the call of `api` failed.
#define HONE_ORT_RETURN_IF_ERROR(api, call) HONE_RETURN_IF_ERROR(::hone::ort::status_of(api, call))
