// factory.cc - what ONNX Runtime finds in the library by name: the functions that make and release
// the factory of providers.
#include <algorithm>
#include <charconv>
#include <span>
#include <string>
#include <string_view>

#include "hone/export.h"
#include "hone/version.h"

#include "provider.h"

namespace hone::ort {
namespace {

class Factory : public OrtEpFactory {
 public:
  explicit Factory(const OrtApi& api) : api_(api) {
    get_name = [](const OrtEpFactory*) { return kProviderName.data(); };
    get_vendor = [](const OrtEpFactory*) { return "Hone"; };
    get_vendor_id = [](const OrtEpFactory*) { return uint32_t{0}; };
    OrtEpFactory::get_version = [](const OrtEpFactory*) {
      static const std::string kVersion(hone::version());
      return kVersion.c_str();
    };
    get_devices = [](OrtEpFactory* self, const OrtHardwareDevice* const* devices, size_t count,
                     OrtEpDevice** found, size_t most, size_t* num_found) {
      Factory& factory = *static_cast<Factory*>(self);
      *num_found = 0;
      return guarded(factory.api_, [&] {
        return factory.find_devices({devices, count}, {found, most}, *num_found);
      });
    };
    create_ep = [](OrtEpFactory* self, const OrtHardwareDevice* const*,
                   const OrtKeyValuePairs* const*, size_t, const OrtSessionOptions* options,
                   const OrtLogger* logger, OrtEp** ep) {
      const OrtApi& api = static_cast<Factory*>(self)->api_;
      *ep = nullptr;
      return guarded(api, [&]() -> Status {
        HONE_ASSIGN_OR_RETURN(auto provider, Provider::create(api, options, logger));
        *ep = provider.release();
        return ok_status();
      });
    };
    release_ep = [](OrtEpFactory*, OrtEp* ep) { delete static_cast<Provider*>(ep); };
    create_data_transfer = [](OrtEpFactory*, OrtDataTransfer** transfer) {
      *transfer = nullptr;  // the memory is ONNX Runtime's
      return static_cast<OrtStatus*>(nullptr);
    };
    is_stream_aware = [](const OrtEpFactory*) { return false; };
  }

 private:
  // The provider runs on CPUs.
  Status find_devices(std::span<const OrtHardwareDevice* const> devices,
                      std::span<OrtEpDevice*> found, size_t& num_found) {
    for (const OrtHardwareDevice* device : devices) {
      if (api_.device_type(device) != OrtDeviceType::kCpu || num_found == found.size()) continue;
      HONE_ORT_RETURN_IF_ERROR(
          api_, OrtEpApi(api_).create_device(this, device, nullptr, nullptr, &found[num_found]));
      ++num_found;
    }
    return ok_status();
  }

  const OrtApi api_;
};

// Returns the second number of a version such as "1.24.1".
uint32_t minor_of(std::string_view version) {
  uint32_t minor = 0;
  const std::string_view rest = version.substr(std::min(version.find('.') + 1, version.size()));
  std::from_chars(rest.data(), rest.data() + rest.size(), minor);
  return minor;
}

// Returns the newest interface that both sides know; 0: none.
uint32_t version_for(const OrtApiBase& base) {
  const uint32_t minor = minor_of(base.get_version());
  return minor >= kShapeApi ? kShapeApi : minor >= kOldestApi ? kOldestApi : 0;
}

// Says that the version of ONNX Runtime is too old, by the one function that all versions have at
// the same place.
OrtStatus* refuse_version(const OrtApiBase& base) {
  const void* const* table = base.get_api(1);
  if (table == nullptr) return nullptr;
  const std::string message = fmt::format("Hone: found ONNX Runtime {}, expected 1.{} or later",
                                          base.get_version(), kOldestApi);
  return decltype(OrtApi::create_status)(table)(OrtCode::kNotImplemented, message.c_str());
}

}  // namespace
}  // namespace hone::ort

extern "C" {

HONE_API hone::ort::OrtStatus* CreateEpFactories(const char* /*registered_name*/,
                                                 const hone::ort::OrtApiBase* base,
                                                 const hone::ort::OrtLogger* /*logger*/,
                                                 hone::ort::OrtEpFactory** factories, size_t most,
                                                 size_t* count) {
  using namespace hone::ort;
  *count = 0;
  const uint32_t version = version_for(*base);
  const void* const* table = version > 0 ? base->get_api(version) : nullptr;
  if (table == nullptr) return refuse_version(*base);
  const OrtApi api(table, version);
  return guarded(api, [&] {
    if (most < 1) return hone::invalid("there is no place for a factory");
    factories[0] = new Factory(api);
    *count = 1;
    return hone::ok_status();
  });
}

HONE_API hone::ort::OrtStatus* ReleaseEpFactory(hone::ort::OrtEpFactory* factory) {
  delete static_cast<hone::ort::Factory*>(factory);
  return nullptr;
}

}  // extern "C"
