// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The room of the file of events.
//
// Lines go one behind the other until they have a quarter of the limit: the file's beginning, which stays. The second
// quarter is for what later lines refer to, such as stacks, which stays too. Everything else goes into the second half
// from then on: a ring of segments, each with its number, of which the newest one takes the place of the oldest. So the
// file has the program's first calls and its last ones, and is in order whenever the program dies: bytes that were
// taken and not written are zeros, and a segment without its first line is none.
//
// Locking: one lock, held over memory alone. A thread takes its bytes, and writes them without the lock. The one thread
// that prepares a segment waits until nobody writes into the segment any more; others wait for that thread, but not for
// ever.
#include "doctor/record/room.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "doctor/record/line.h"

enum {
  kSegments = 8,
  kFirstLine = 64,     // of a segment, at most
  kReserve = 1 << 10,  // of the definitions' room: for what is not asked whether there is room
  kYields = 1000,      // a write takes some microseconds
  kMaxWaits = 10000,   // of a millisecond: a disk may be slow, and a thread that died in its write stops no others
};

typedef struct place {
  uint64_t offset;
  uint64_t segment;  // 0 for the beginning
} place_t;

static struct {
  pthread_mutex_t lock;
  uint64_t limit;
  uint64_t front;               // bytes that are taken of the beginning
  uint64_t segment;             // the newest one's number, from 1 on; 0 before there is one
  uint64_t used;                // bytes that are taken of it
  bool is_turning;              // a thread prepares the next one
  uint32_t writers[kSegments];  // that write into each
} room = {.lock = PTHREAD_MUTEX_INITIALIZER};

static char zeros[64 << 10];

void gcap_doctor_room_start(uint64_t limit) { room.limit = limit; }

static uint64_t ring_offset(void) { return room.limit / 2; }
static uint64_t segment_bytes(void) { return room.limit / 2 / kSegments; }
static uint64_t place_of(uint64_t segment) { return (segment - 1) % kSegments; }

static void wait_a_little(int i) {
  const struct timespec millisecond = {.tv_nsec = 1000000};
  if (i < kYields) {
    sched_yield();
  } else {
    nanosleep(&millisecond, NULL);
  }
}

static bool lock_room(bool is_within) {
  if (!is_within) return pthread_mutex_lock(&room.lock) == 0;
  for (int i = 0; i < kYields; ++i) {
    if (pthread_mutex_trylock(&room.lock) == 0) return true;
    sched_yield();
  }
  errno = EDEADLK;
  return false;
}

bool gcap_doctor_room_has_definitions(void) {
  pthread_mutex_lock(&room.lock);
  const bool has_room = room.front + kReserve < ring_offset();
  pthread_mutex_unlock(&room.lock);
  return has_room;
}

// --- The next segment, by the one thread that turns to it --------------------------------------------------------------

static bool write_ring(const gcap_doctor_own_file_t* file, uint64_t offset) {
  gcap_doctor_line_t line = {0};
  gcap_doctor_line_begin(&line, "ring");
  gcap_doctor_line_number(&line, "at", ring_offset());
  gcap_doctor_line_number(&line, "size", segment_bytes());
  gcap_doctor_line_number(&line, "count", kSegments);
  gcap_doctor_line_end(&line);
  const bool written = !line.failed && gcap_doctor_own_file_write(file, line.data, line.size, offset);
  gcap_doctor_line_free(&line);
  return written;
}

// What the ring was a round ago. Its first line goes first: a program that dies here leaves no segment.
static bool clear_segment(const gcap_doctor_own_file_t* file, uint64_t offset) {
  uint64_t done = kFirstLine;
  bool written = gcap_doctor_own_file_write(file, zeros, kFirstLine, offset);
  while (written && done < segment_bytes()) {
    const uint64_t left = segment_bytes() - done;
    const size_t part = left < sizeof(zeros) ? (size_t)left : sizeof(zeros);
    written = gcap_doctor_own_file_write(file, zeros, part, offset + done);
    done += part;
  }
  return written;
}

static bool write_segment(const gcap_doctor_own_file_t* file, uint64_t segment, size_t* out_used) {
  const uint64_t offset = ring_offset() + place_of(segment) * segment_bytes();
  gcap_doctor_line_t line = {0};
  gcap_doctor_line_begin(&line, "segment");
  gcap_doctor_line_number(&line, "n", segment);
  gcap_doctor_line_end(&line);
  const bool written = !line.failed && (segment <= kSegments || clear_segment(file, offset)) &&
                       gcap_doctor_own_file_write(file, line.data, line.size, offset);
  *out_used = line.size;
  gcap_doctor_line_free(&line);
  return written;
}

static void await_writers(uint64_t segment) {
  bool has_writers = true;
  for (int i = 0; has_writers && i < kYields + kMaxWaits; ++i) {
    pthread_mutex_lock(&room.lock);
    has_writers = room.writers[place_of(segment)] != 0;
    pthread_mutex_unlock(&room.lock);
    if (has_writers) wait_a_little(i);
  }
}

// `front` is where the ring's own line goes before its first segment.
static bool turn(const gcap_doctor_own_file_t* file, uint64_t front) {
  const uint64_t next = room.segment + 1;  // nobody else changes it
  size_t used = 0;
  await_writers(next);
  const bool written = (next > 1 || write_ring(file, front)) && write_segment(file, next, &used);
  const int error = errno;
  pthread_mutex_lock(&room.lock);
  if (written) {
    room.segment = next;
    room.used = used;
  }
  room.is_turning = false;
  pthread_mutex_unlock(&room.lock);
  errno = error;
  return written;
}

// --- Places ------------------------------------------------------------------------------------------------------------

// With the lock held.
static bool take_front(size_t size, bool is_definition, place_t* out_place) {
  const uint64_t most = is_definition ? ring_offset() - kFirstLine : room.limit / 4;
  if ((room.segment != 0 && !is_definition) || room.front + size > most) return false;
  *out_place = (place_t){.offset = room.front};
  room.front += size;
  return true;
}

// With the lock held.
static bool take_of_segment(size_t size, place_t* out_place) {
  if (room.segment == 0 || room.is_turning || room.used + size > segment_bytes()) return false;
  *out_place = (place_t){.offset = ring_offset() + place_of(room.segment) * segment_bytes() + room.used,
                         .segment = room.segment};
  room.used += size;
  ++room.writers[place_of(room.segment)];
  return true;
}

// Room for `size` bytes, which fit into a segment.
static bool take(const gcap_doctor_own_file_t* file, size_t size, bool is_definition, bool is_within,
                 place_t* out_place) {
  const int most = is_within ? kYields : kYields + kMaxWaits;
  for (int i = 0; i < most; ++i) {
    if (!lock_room(is_within)) return false;
    const bool taken = take_front(size, is_definition, out_place) || take_of_segment(size, out_place);
    const bool turns = !taken && !room.is_turning;
    const uint64_t front = room.front;
    if (turns) {
      room.is_turning = true;
      if (room.segment == 0) room.front += kFirstLine;
    }
    pthread_mutex_unlock(&room.lock);
    if (taken) return true;
    if (turns && !turn(file, front)) return false;
    if (!turns) wait_a_little(i);
  }
  errno = EDEADLK;
  return false;
}

static void leave(const place_t* place) {
  if (place->segment == 0) return;
  pthread_mutex_lock(&room.lock);
  --room.writers[place_of(place->segment)];
  pthread_mutex_unlock(&room.lock);
}

// The bytes of the first whole lines that fit into a segment; of the first line, where that does not fit.
static size_t first_part(const char* lines, size_t size, bool* out_fits) {
  const size_t most = (size_t)segment_bytes() - kFirstLine;
  *out_fits = true;
  if (size <= most) return size;
  size_t part = most;
  while (part != 0 && lines[part - 1] != '\n') --part;
  if (part != 0) return part;
  const char* end = memchr(lines, '\n', size);
  *out_fits = false;
  return end != NULL ? (size_t)(end - lines) + 1 : size;
}

bool gcap_doctor_room_write(const gcap_doctor_own_file_t* file, const char* lines, size_t size, bool is_definition,
                            bool is_within) {
  while (size != 0) {
    bool fits;
    const size_t part = first_part(lines, size, &fits);
    place_t place;
    if (fits) {
      if (!take(file, part, is_definition, is_within, &place)) return false;
      const bool written = gcap_doctor_own_file_write(file, lines, part, place.offset);
      const int error = errno;
      leave(&place);
      errno = error;
      if (!written) return false;
    }
    lines += part;
    size -= part;
  }
  return true;
}
