// export.h - HONE_API marks what libhone.so exports. Everything else in it is hidden.
#pragma once

#define HONE_API __attribute__((visibility("default")))
