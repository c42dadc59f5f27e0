// The watchdog of device.h. Drivers have no call that waits for a while, so events are polled.
#include <sched.h>
#include <time.h>

#include <atomic>

#include "hone/runtime/device/driver.h"
#include "hone/runtime/pool.h"

namespace hone::runtime {
namespace {

constexpr int64_t kMostLaunches = 512;  // NVIDIA's drivers have queues of about 1024
constexpr int64_t kMostSleepNs = 10'000'000;

// The devices that hung, by kind and the bit of their index.
std::atomic<uint64_t> hung[3];

uint64_t bit_of(int index) { return uint64_t{1} << (static_cast<unsigned>(index) % 64); }

// Spins at first, then sleeps for a sixty-fourth of the time so far, which delays a run by no more
// than that.
void pause_after(int64_t waited_ns) {
  constexpr int64_t kSpinNs = 1'000'000;
  if (waited_ns < kSpinNs) {
    sched_yield();
    return;
  }
  const int64_t sleep = waited_ns / 64 < kMostSleepNs ? waited_ns / 64 : kMostSleepNs;
  const timespec length = {0, static_cast<long>(sleep)};
  nanosleep(&length, nullptr);
}

// --- The driver of a device that hangs: nothing is asked of the real one, which might wait ---

bool refuse(Device& device) {
  return fail_device(device,
                     "%s is lost to this process: what ran there did not end within %g s, and may "
                     "run until the process ends",
                     device.properties.name, static_cast<double>(device.watch.limit_ns) * 1e-9);
}

// A function of the table that fails, or that does nothing.
template <typename... Args>
bool refuse_with(Device& device, Args...) {
  return refuse(device);
}
template <typename... Args>
void ignore(Device&, Args...) {}

constexpr Driver make_lost_driver() {
  Driver lost = {};
  lost.close = ignore;
  lost.allocate = refuse_with;
  lost.free = ignore;
  lost.upload = refuse_with;
  lost.download = refuse_with;
  lost.copy = refuse_with;
  lost.zero = refuse_with;
  lost.synchronize = refuse_with;
  lost.load = refuse_with;
  lost.unload = ignore;
  lost.binary = [](Device& device, const DeviceModule&, void*, int64_t) -> int64_t {
    return refuse(device) ? 0 : -1;
  };
  lost.function = refuse_with;
  lost.release_function = ignore;
  lost.launch = refuse_with;
  lost.record = refuse_with;
  lost.elapsed = refuse_with;
  lost.wait = refuse_with;
  lost.release_event = ignore;
  lost.begin_graph = refuse_with;
  lost.end_graph = refuse_with;
  lost.launch_graph = refuse_with;
  lost.release_graph = ignore;
  lost.use_stream = ignore;
  lost.wait_in_stream = refuse_with;
  lost.check_pointer = refuse_with;
  lost.check_host_pointer = refuse_with;
  return lost;
}

constexpr Driver kLostDriver = make_lost_driver();

// Keeps the library that this code is a part of loaded, and with it the list of devices that hung:
// a model that is loaded again would else wait for such a device.
void stay_loaded() {
  Dl_info info = {};
  if (dladdr(&hung, &info) != 0 && info.dli_fname != nullptr)
    dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

bool give_up(Device& device) {
  stay_loaded();
  device.lost = device.hangs = true;
  device.driver = &kLostDriver;
  hung[static_cast<int>(device.properties.kind)].fetch_or(bit_of(device.index));
  return refuse(device);
}

}  // namespace

bool has_hung(DeviceKind kind, int index) {
  return (hung[static_cast<int>(kind)].load() & bit_of(index)) != 0;
}

bool await(Device& device, const DeviceEvent& event) {
  if (device.hangs) return refuse(device);
  if (device.watch.deadline_ns == 0) return true;  // the driver waits
  const int64_t start = clock_ns();
  while (true) {
    const Progress progress = device.driver->poll(device, event);
    if (progress != Progress::kUnderWay) return progress == Progress::kDone;
    const int64_t now = clock_ns();
    if (now >= device.watch.deadline_ns) return give_up(device);
    pause_after(now - start);
  }
}

bool await_launches(Device& device) {
  if (device.hangs) return refuse(device);
  if (device.watch.deadline_ns == 0 || device.watch.launches <= 0) return true;
  if (!device.driver->record(device, device.watch.end) || !await(device, device.watch.end))
    return false;
  device.watch.launches = 0;
  return true;
}

void count_launch(Device& device) {
  if (device.watch.launches >= 0) ++device.watch.launches;
}

bool device_keep_up(Device& device) {
  return device.watch.launches < kMostLaunches || await_launches(device);
}

void device_start_timer(Device& device, int64_t limit_ns) {
  if (device.hangs) return;  // the limit is in its error
  device.watch.limit_ns = limit_ns;
  device.watch.deadline_ns = limit_ns <= 0 ? 0 : clock_ns() + limit_ns;
}

bool device_is_in_time(Device& device, const DeviceEvent& event) {
  if (device.hangs) return refuse(device);
  if (device.watch.deadline_ns == 0 || event.handle == 0 || clock_ns() < device.watch.deadline_ns)
    return true;
  return await(device, event);
}

bool device_hangs(const Device& device) { return device.hangs; }

bool device_has_happened(Device& device, const DeviceEvent& event) {
  return event.handle == 0 || device.opened_by->poll(device, event) != Progress::kUnderWay;
}

}  // namespace hone::runtime
