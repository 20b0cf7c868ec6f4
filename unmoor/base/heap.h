#pragma once

namespace unmoor {

// From now on memory that is freed stays with the process, in one heap of all threads, instead of going back to the system, which clears every
// page that it gives anew. For tools that take and free tensors over and over; to be called before threads are made.
void keep_freed_memory();
// What is free goes back to the system now: between two parts of such work. Any thread.
void give_back_freed_memory();

}  // namespace unmoor
