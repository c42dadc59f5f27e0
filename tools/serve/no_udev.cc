// The functions of libudev that hwloc calls for names of disks and network cards, of which Hone
// needs none. Debian has no static libudev: here, udev is never there.
extern "C" {
struct udev;
struct udev_device;
udev* udev_new() { return nullptr; }
udev* udev_unref(udev*) { return nullptr; }
udev_device* udev_device_new_from_subsystem_sysname(udev*, const char*, const char*) {
  return nullptr;
}
const char* udev_device_get_property_value(udev_device*, const char*) { return nullptr; }
udev_device* udev_device_unref(udev_device*) { return nullptr; }
}
