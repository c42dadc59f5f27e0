// NVIDIA's management library as far as gpu_clocks.h needs it, for tests: a GPU at one address,
// which is throttled in the first looks at it and within its power limit from then on.
namespace {

constexpr int kLooks = 3;
int looks = 0;
int users = 0;
int gpu = 0;

bool same(const char* a, const char* b) {
  for (; *a != '\0' && *a == *b; ++a, ++b) {
  }
  return *a == *b;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  looks = 0;
  ++users;
  return 0;
}
int nvmlShutdown() { return --users < 0 ? 1 : 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** device) {
  *device = &gpu;
  return same(address, "0000:3b:00.0") ? 0 : 6;
}
int nvmlDeviceGetClockInfo(void* device, int which, unsigned* mhz) {
  *mhz = which == 1 ? 1980 : 7;
  return device == &gpu ? 0 : 2;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* bits) {
  *bits = looks++ < kLooks ? 0x40 : 0x4;
  return device == &gpu ? 0 : 2;
}
}
