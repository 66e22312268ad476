;; A guest that breaks one rule of its host for each request. The second character of the
;; path says which; see the table at the end. It links like a component's core module.
;;
;; Memory: 0..63 results of calls, 64..127 the request's path, 128..255 scratch,
;; 512.. texts, from 4096 the heap. The byte at 256 says how cabi_realloc behaves.
(module
  (import "wasi:http/types@0.2.0" "[method]incoming-request.method" (func $method (param i32 i32)))
  (import "wasi:http/types@0.2.0" "[method]incoming-request.path-with-query" (func $path (param i32 i32)))
  (import "wasi:http/types@0.2.0" "[method]incoming-request.headers" (func $headers (param i32) (result i32)))
  (import "wasi:http/types@0.2.0" "[resource-drop]incoming-request" (func $drop_request (param i32)))
  (import "wasi:http/types@0.2.0" "[static]fields.from-list" (func $from_list (param i32 i32 i32)))
  (import "wasi:http/types@0.2.0" "[method]fields.get" (func $get (param i32 i32 i32 i32)))
  (import "wasi:http/types@0.2.0" "[method]fields.entries" (func $entries (param i32 i32)))
  (import "wasi:http/types@0.2.0" "[resource-drop]fields" (func $drop_fields (param i32)))
  (import "wasi:http/types@0.2.0" "[constructor]outgoing-response" (func $new_response (param i32) (result i32)))
  (import "wasi:http/types@0.2.0" "[method]outgoing-response.set-status-code" (func $set_status (param i32 i32) (result i32)))
  (import "wasi:http/types@0.2.0" "[method]outgoing-response.body" (func $body (param i32 i32)))
  (import "wasi:http/types@0.2.0" "[method]outgoing-body.write" (func $stream (param i32 i32)))
  (import "wasi:http/types@0.2.0" "[static]outgoing-body.finish" (func $finish (param i32 i32 i32 i32)))
  (import "wasi:http/types@0.2.0" "[resource-drop]outgoing-body" (func $drop_body (param i32)))
  (import "wasi:http/types@0.2.0" "[static]response-outparam.set" (func $set (param i32 i32 i32 i32 i64 i32 i32 i32 i32)))
  (import "wasi:http/types@0.2.0" "[constructor]outgoing-request" (func $new_request (param i32) (result i32)))
  (import "wasi:http/types@0.2.0" "[method]outgoing-request.set-method" (func $set_method (param i32 i32 i32 i32) (result i32)))
  (import "wasi:http/types@0.2.0" "[method]outgoing-request.set-path-with-query" (func $set_target (param i32 i32 i32 i32) (result i32)))
  (import "wasi:http/types@0.2.0" "[method]outgoing-request.set-scheme" (func $set_scheme (param i32 i32 i32 i32 i32) (result i32)))
  (import "wasi:http/types@0.2.0" "[method]outgoing-request.set-authority" (func $set_authority (param i32 i32 i32 i32) (result i32)))
  (import "wasi:http/types@0.2.0" "[method]future-incoming-response.get" (func $future (param i32 i32)))
  (import "wasi:http/types@0.2.0" "[method]incoming-response.status" (func $status (param i32) (result i32)))
  (import "wasi:http/outgoing-handler@0.2.0" "handle" (func $handle (param i32 i32 i32 i32)))
  (import "wasi:io/poll@0.2.0" "poll" (func $poll (param i32 i32 i32)))
  (import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-and-flush" (func $write (param i32 i32 i32 i32)))
  (import "wasi:io/streams@0.2.0" "[resource-drop]output-stream" (func $drop_stream (param i32)))
  (import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $timer (param i64) (result i32)))
  (import "fermyon:spin/sqlite@2.0.0" "[static]connection.open" (func $open (param i32 i32 i32)))
  (import "fermyon:spin/sqlite@2.0.0" "[method]connection.execute" (func $execute (param i32 i32 i32 i32 i32 i32)))
  (import "fermyon:spin/variables@2.0.0" "get" (func $variable (param i32 i32 i32)))

  (memory (export "memory") 2 512)
  (global $heap (mut i32) (i32.const 4096))

  (data (i32.const 512) "ok")
  (data (i32.const 520) "refused")
  (data (i32.const 530) "\ff\fe")
  (data (i32.const 540) "x-field")
  (data (i32.const 550) "a\0d\0aX-More: b")
  (data (i32.const 570) "Connection")
  (data (i32.const 590) "meter.internal")
  (data (i32.const 610) "elsewhere.test")
  (data (i32.const 630) "Authorization")
  (data (i32.const 650) "Bearer token-of-the-meter")
  (data (i32.const 680) "Content-Length")
  (data (i32.const 700) "/v1/charge?id=hostile-1&account=7&key=12&endpoint=companies&outcome=found&rate=60")
  (data (i32.const 800) "registry")
  (data (i32.const 810) "SELECT 1")
  (data (i32.const 820) "nothing")
  (data (i32.const 910) "/v1/void?id=hostile-1")
  (data (i32.const 940) "authorization")
  (data (i32.const 960) "/v1/charge?id=hostile-1&id=hostile-2")

  ;; The allocator moves a pointer, unless the byte at 256 says otherwise.
  (func $realloc (export "cabi_realloc") (param $old i32) (param $oldsize i32) (param $align i32) (param $size i32) (result i32)
    (local $at i32)
    (local $mode i32)
    (local.set $mode (i32.load8_u (i32.const 256)))
    (if (i32.eq (local.get $mode) (i32.const 1)) (then (unreachable)))
    (if (i32.eq (local.get $mode) (i32.const 2)) (then (return (i32.const 0x7ffffff0))))
    (if (i32.eq (local.get $mode) (i32.const 3)) (then (return (i32.const 4099))))
    (if (i32.eq (local.get $mode) (i32.const 4)) (then (drop (call $timer (i64.const 1)))))
    (if (i32.eq (local.get $mode) (i32.const 5)) (then (loop $l (br $l))))
    (if (i32.eq (local.get $mode) (i32.const 6)) (then (return (i32.const 131071))))
    (if (i32.eq (local.get $mode) (i32.const 7)) (then (return (i32.const 16))))
    (local.set $at (i32.and
      (i32.add (global.get $heap) (i32.sub (local.get $align) (i32.const 1)))
      (i32.sub (i32.const 0) (local.get $align))))
    (global.set $heap (i32.add (local.get $at) (local.get $size)))
    (local.get $at))

  (func $behave (param $mode i32) (i32.store8 (i32.const 256) (local.get $mode)))

  ;; no_fields makes an empty list of header fields.
  (func $no_fields (result i32)
    (call $from_list (i32.const 128) (i32.const 0) (i32.const 0))
    (i32.load (i32.const 4)))

  ;; one_field tries to make a list of one field; its result is at 0.
  (func $one_field (param $name i32) (param $namesize i32) (param $value i32) (param $valuesize i32)
    (i32.store (i32.const 128) (local.get $name))
    (i32.store (i32.const 132) (local.get $namesize))
    (i32.store (i32.const 136) (local.get $value))
    (i32.store (i32.const 140) (local.get $valuesize))
    (call $from_list (i32.const 128) (i32.const 1) (i32.const 0)))

  (func $send (param $out i32) (param $response i32)
    (call $set (local.get $out) (i32.const 0) (local.get $response) (i32.const 0) (i64.const 0)
      (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))

  ;; answer sends a whole response with the given fields.
  (func $answer_with (param $out i32) (param $fields i32) (param $text i32) (param $size i32)
    (local $response i32) (local $body i32) (local $stream i32)
    (local.set $response (call $new_response (local.get $fields)))
    (call $body (local.get $response) (i32.const 0))
    (local.set $body (i32.load (i32.const 4)))
    (call $stream (local.get $body) (i32.const 0))
    (local.set $stream (i32.load (i32.const 4)))
    (call $write (local.get $stream) (local.get $text) (local.get $size) (i32.const 0))
    (call $drop_stream (local.get $stream))
    (call $send (local.get $out) (local.get $response))
    (call $finish (local.get $body) (i32.const 0) (i32.const 0) (i32.const 0)))
  (func $answer (param $out i32) (param $text i32) (param $size i32)
    (call $answer_with (local.get $out) (call $no_fields) (local.get $text) (local.get $size)))
  (func $ok (param $out i32) (call $answer (local.get $out) (i32.const 512) (i32.const 2)))
  (func $refused (param $out i32) (call $answer (local.get $out) (i32.const 520) (i32.const 7)))

  ;; refused_if answers "refused" when the condition holds, else "ok".
  (func $refused_if (param $out i32) (param $condition i32)
    (if (local.get $condition)
      (then (call $refused (local.get $out)))
      (else (call $ok (local.get $out)))))

  ;; call_meter sends a request to an authority, with the field given, if it has a name.
  ;; The result of handle is at 0.
  (func $call_meter (param $authority i32) (param $token i32) (param $target i32) (param $targetsize i32) (param $method i32)
    (local $request i32)
    (call $one_field (i32.const 630) (i32.const 13) (i32.const 650) (local.get $token))
    (local.set $request (call $new_request (i32.load (i32.const 4))))
    (drop (call $set_method (local.get $request) (local.get $method) (i32.const 0) (i32.const 0)))
    (drop (call $set_scheme (local.get $request) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0)))
    (drop (call $set_authority (local.get $request) (i32.const 1) (local.get $authority) (i32.const 14)))
    (drop (call $set_target (local.get $request) (i32.const 1) (local.get $target) (local.get $targetsize)))
    (call $handle (local.get $request) (i32.const 0) (i32.const 0) (i32.const 0)))
  (func $charge (call $call_meter (i32.const 590) (i32.const 25) (i32.const 700) (i32.const 81) (i32.const 2)))

  ;; meter_status is the status of the answer to the last call_meter.
  (func $meter_status (result i32)
    (local $future i32)
    (local.set $future (i32.load (i32.const 8)))
    (call $future (local.get $future) (i32.const 0))
    (call $status (i32.load (i32.const 24))))

  (func $recurse (param i32) (result i32)
    (i32.add (call $recurse (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))

  ;; fib takes for ever without a loop.
  (func $fib (param i32) (result i32)
    (if (i32.lt_u (local.get 0) (i32.const 2)) (then (return (i32.const 1))))
    (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1))) (call $fib (i32.sub (local.get 0) (i32.const 2)))))

  ;; execute runs a statement of the text given on the registry.
  (func $query (param $text i32) (param $size i32) (param $args i32) (param $count i32)
    (call $open (i32.const 800) (i32.const 8) (i32.const 0))
    (call $execute (i32.load (i32.const 4)) (local.get $text) (local.get $size) (local.get $args) (local.get $count) (i32.const 0)))

  (func (export "wasi:http/incoming-handler@0.2.0#handle") (param $request i32) (param $out i32)
    (local $what i32) (local $a i32)
    (call $path (local.get $request) (i32.const 64))
    (local.set $what (i32.load8_u (i32.add (i32.load (i32.const 68)) (i32.const 1))))

    ;; o: an honest answer
    (if (i32.eq (local.get $what) (i32.const 0x6f)) (then (call $ok (local.get $out)) (return)))

    ;; a: a handle made up
    (if (i32.eq (local.get $what) (i32.const 0x61)) (then (call $method (i32.const 0x12345) (i32.const 0))))
    ;; b: a handle after it was dropped
    (if (i32.eq (local.get $what) (i32.const 0x62)) (then
      (call $drop_request (local.get $request))
      (call $method (local.get $request) (i32.const 0))))
    ;; c: a handle of another resource
    (if (i32.eq (local.get $what) (i32.const 0x63)) (then (call $method (local.get $out) (i32.const 0))))
    ;; d: a handle that was moved away
    (if (i32.eq (local.get $what) (i32.const 0x64)) (then
      (local.set $a (call $no_fields))
      (drop (call $new_response (local.get $a)))
      (drop (call $new_response (local.get $a)))))
    ;; e: two answers
    (if (i32.eq (local.get $what) (i32.const 0x65)) (then (call $ok (local.get $out)) (call $ok (local.get $out))))
    ;; f: no answer
    (if (i32.eq (local.get $what) (i32.const 0x66)) (then (return)))
    ;; g: a result beyond the memory
    (if (i32.eq (local.get $what) (i32.const 0x67)) (then (call $method (local.get $request) (i32.const 0x7ffffff0))))
    ;; h: a text across the end of the memory
    (if (i32.eq (local.get $what) (i32.const 0x68)) (then
      (call $get (call $headers (local.get $request)) (i32.const 131070) (i32.const 4) (i32.const 0))))
    ;; i: a misaligned result
    (if (i32.eq (local.get $what) (i32.const 0x69)) (then (call $method (local.get $request) (i32.const 1))))
    ;; j: a text that is not UTF-8
    (if (i32.eq (local.get $what) (i32.const 0x6a)) (then
      (call $get (call $headers (local.get $request)) (i32.const 530) (i32.const 2) (i32.const 0))))
    ;; k: an endless loop
    (if (i32.eq (local.get $what) (i32.const 0x6b)) (then (loop $l (br $l))))
    ;; l: an endless recursion
    (if (i32.eq (local.get $what) (i32.const 0x6c)) (then (drop (call $recurse (i32.const 0)))))
    ;; m: a recursion that is not deep and does not end
    (if (i32.eq (local.get $what) (i32.const 0x6d)) (then (drop (call $fib (i32.const 90)))))
    ;; n: a trap
    (if (i32.eq (local.get $what) (i32.const 0x6e)) (then (unreachable)))
    ;; p: all the memory there is, and more
    (if (i32.eq (local.get $what) (i32.const 0x70)) (then
      (loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
      (i32.store (i32.shl (memory.size) (i32.const 16)) (i32.const 1))))
    ;; q: a page more, and an honest answer
    (if (i32.eq (local.get $what) (i32.const 0x71)) (then
      (drop (memory.grow (i32.const 1)))
      (call $ok (local.get $out)) (return)))
    ;; r to v, 6, 7: an allocator that traps, lies, calls back, hangs, overlaps
    (if (i32.and (i32.ge_u (local.get $what) (i32.const 0x72)) (i32.le_u (local.get $what) (i32.const 0x76))) (then
      (call $behave (i32.sub (local.get $what) (i32.const 0x71)))
      (call $entries (call $headers (local.get $request)) (i32.const 0))
      (call $ok (local.get $out)) (return)))
    (if (i32.eq (local.get $what) (i32.const 0x36)) (then
      (call $behave (i32.const 6))
      (call $entries (call $headers (local.get $request)) (i32.const 0))))
    ;; 7: an honest answer, and then an allocator that hides what was used
    (if (i32.eq (local.get $what) (i32.const 0x37)) (then
      (call $ok (local.get $out))
      (call $behave (i32.const 7)) (return)))
    ;; 8: an honest answer, and then an allocator that hangs
    (if (i32.eq (local.get $what) (i32.const 0x38)) (then
      (call $ok (local.get $out))
      (call $behave (i32.const 5)) (return)))
    ;; w: a body without end
    (if (i32.eq (local.get $what) (i32.const 0x77)) (then
      (call $body (call $new_response (call $no_fields)) (i32.const 0))
      (call $stream (i32.load (i32.const 4)) (i32.const 0))
      (local.set $a (i32.load (i32.const 4)))
      (loop $l (call $write (local.get $a) (i32.const 0) (i32.const 4096) (i32.const 0)) (br $l))))
    ;; x: a header with a line end in it
    (if (i32.eq (local.get $what) (i32.const 0x78)) (then
      (call $one_field (i32.const 540) (i32.const 7) (i32.const 550) (i32.const 13))
      (call $refused_if (local.get $out) (i32.and (i32.load8_u (i32.const 0)) (i32.eqz (i32.load8_u (i32.const 4))))) (return)))
    ;; y: a header of the connection
    (if (i32.eq (local.get $what) (i32.const 0x79)) (then
      (call $one_field (i32.const 570) (i32.const 10) (i32.const 512) (i32.const 2))
      (call $refused_if (local.get $out) (i32.and (i32.load8_u (i32.const 0)) (i32.eq (i32.load8_u (i32.const 4)) (i32.const 1)))) (return)))
    ;; z: handles without end
    (if (i32.eq (local.get $what) (i32.const 0x7a)) (then (loop $l (drop (call $timer (i64.const 0))) (br $l))))
    ;; A: a wait for nothing
    (if (i32.eq (local.get $what) (i32.const 0x41)) (then (call $poll (i32.const 128) (i32.const 0) (i32.const 0))))
    ;; B: a wait for a handle of another resource
    (if (i32.eq (local.get $what) (i32.const 0x42)) (then
      (i32.store (i32.const 128) (local.get $request))
      (call $poll (i32.const 128) (i32.const 1) (i32.const 0))))
    ;; C: a wait of an hour
    (if (i32.eq (local.get $what) (i32.const 0x43)) (then
      (i32.store (i32.const 128) (call $timer (i64.const 3600000000000)))
      (call $poll (i32.const 128) (i32.const 1) (i32.const 0))))
    ;; D: a body dropped before its stream
    (if (i32.eq (local.get $what) (i32.const 0x44)) (then
      (call $body (call $new_response (call $no_fields)) (i32.const 0))
      (local.set $a (i32.load (i32.const 4)))
      (call $stream (local.get $a) (i32.const 0))
      (call $drop_body (local.get $a))))
    ;; E: a body that is not finished
    (if (i32.eq (local.get $what) (i32.const 0x45)) (then
      (local.set $a (call $new_response (call $no_fields)))
      (call $body (local.get $a) (i32.const 0))
      (call $send (local.get $out) (local.get $a)) (return)))
    ;; F: a trap after a charge
    (if (i32.eq (local.get $what) (i32.const 0x46)) (then (call $charge) (unreachable)))
    ;; G: an endless loop after a charge
    (if (i32.eq (local.get $what) (i32.const 0x47)) (then (call $charge) (loop $l (br $l))))
    ;; H: a charge and an honest answer
    (if (i32.eq (local.get $what) (i32.const 0x48)) (then
      (call $charge)
      (call $refused_if (local.get $out) (i32.ne (call $meter_status) (i32.const 200))) (return)))
    ;; I: a request to another server
    (if (i32.eq (local.get $what) (i32.const 0x49)) (then
      (call $call_meter (i32.const 610) (i32.const 25) (i32.const 700) (i32.const 81) (i32.const 2))
      (call $refused_if (local.get $out) (i32.and (i32.load8_u (i32.const 0)) (i32.eq (i32.load8_u (i32.const 8)) (i32.const 15)))) (return)))
    ;; J: a charge with a wrong token
    (if (i32.eq (local.get $what) (i32.const 0x4a)) (then
      (call $call_meter (i32.const 590) (i32.const 24) (i32.const 700) (i32.const 81) (i32.const 2))
      (call $refused_if (local.get $out) (i32.eq (call $meter_status) (i32.const 401))) (return)))
    ;; K: a charge by GET
    (if (i32.eq (local.get $what) (i32.const 0x4b)) (then
      (call $call_meter (i32.const 590) (i32.const 25) (i32.const 700) (i32.const 81) (i32.const 0))
      (call $refused_if (local.get $out) (i32.eq (call $meter_status) (i32.const 405))) (return)))
    ;; L: a malformed charge
    (if (i32.eq (local.get $what) (i32.const 0x4c)) (then
      (call $call_meter (i32.const 590) (i32.const 25) (i32.const 960) (i32.const 36) (i32.const 2))
      (call $refused_if (local.get $out) (i32.eq (call $meter_status) (i32.const 400))) (return)))
    ;; M: more header fields than allowed
    (if (i32.eq (local.get $what) (i32.const 0x4d)) (then (call $from_list (i32.const 128) (i32.const 65) (i32.const 0))))
    ;; N: a list whose size overflows
    (if (i32.eq (local.get $what) (i32.const 0x4e)) (then (call $poll (i32.const 128) (i32.const 0x40000001) (i32.const 0))))
    ;; O: statements without end
    (if (i32.eq (local.get $what) (i32.const 0x4f)) (then
      (loop $l (call $query (i32.const 810) (i32.const 8) (i32.const 128) (i32.const 0)) (br $l))))
    ;; P: a method that is no case of the variant
    (if (i32.eq (local.get $what) (i32.const 0x50)) (then
      (drop (call $set_method (call $new_request (call $no_fields)) (i32.const 77) (i32.const 0) (i32.const 0)))))
    ;; Q: a status that no response has
    (if (i32.eq (local.get $what) (i32.const 0x51)) (then
      (call $refused_if (local.get $out) (call $set_status (call $new_response (call $no_fields)) (i32.const 65535))) (return)))
    ;; R: an error instead of a response
    (if (i32.eq (local.get $what) (i32.const 0x52)) (then
      (call $set (local.get $out) (i32.const 1) (i32.const 38) (i32.const 0) (i64.const 0)
        (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)) (return)))
    ;; S: an honest answer that leaves the request's path all over the heap and the globals
    (if (i32.eq (local.get $what) (i32.const 0x53)) (then
      (loop $l
        (local.set $a (call $realloc (i32.const 0) (i32.const 0) (i32.const 1) (i32.load (i32.const 72))))
        (memory.copy (local.get $a) (i32.load (i32.const 68)) (i32.load (i32.const 72)))
        (br_if $l (i32.lt_u (local.get $a) (i32.const 100000))))
      (call $ok (local.get $out)) (return)))
    ;; T: a database that is not there
    (if (i32.eq (local.get $what) (i32.const 0x54)) (then
      (call $open (i32.const 820) (i32.const 7) (i32.const 0))
      (call $refused_if (local.get $out) (i32.and (i32.load8_u (i32.const 0)) (i32.eqz (i32.load8_u (i32.const 4))))) (return)))
    ;; U: an SQL parameter that is no case of the variant
    (if (i32.eq (local.get $what) (i32.const 0x55)) (then
      (i32.store (i32.const 128) (i32.const 99))
      (call $query (i32.const 810) (i32.const 8) (i32.const 128) (i32.const 1))))
    ;; V: a wrong Content-Length
    (if (i32.eq (local.get $what) (i32.const 0x56)) (then
      (i32.store8 (i32.const 160) (i32.const 0x39))
      (call $one_field (i32.const 680) (i32.const 14) (i32.const 160) (i32.const 1))
      (call $answer_with (local.get $out) (i32.load (i32.const 4)) (i32.const 512) (i32.const 2)) (return)))
    ;; W: a statement that is wrong
    (if (i32.eq (local.get $what) (i32.const 0x57)) (then
      (call $query (i32.const 820) (i32.const 7) (i32.const 128) (i32.const 0))
      (call $refused_if (local.get $out) (i32.and (i32.load8_u (i32.const 0)) (i32.eq (i32.load8_u (i32.const 4)) (i32.const 4)))) (return)))
    ;; X: a result that is over the limit
    (if (i32.eq (local.get $what) (i32.const 0x58)) (then
      (call $query (i32.const 810) (i32.const 8) (i32.const 128) (i32.const 0))))
    ;; Y: a variable that is not there
    (if (i32.eq (local.get $what) (i32.const 0x59)) (then
      (call $variable (i32.const 820) (i32.const 7) (i32.const 0))
      (call $refused_if (local.get $out) (i32.and (i32.load8_u (i32.const 0)) (i32.eq (i32.load8_u (i32.const 4)) (i32.const 1)))) (return)))
    ;; Z: a charge that the guest voids itself, and a trap
    (if (i32.eq (local.get $what) (i32.const 0x5a)) (then
      (call $charge)
      (call $call_meter (i32.const 590) (i32.const 25) (i32.const 910) (i32.const 21) (i32.const 2))
      (unreachable)))
    ;; 0: header fields dropped while the request still lends them
    (if (i32.eq (local.get $what) (i32.const 0x30)) (then
      (drop (call $headers (local.get $request)))
      (call $drop_request (local.get $request))))
    ;; 1: the request's own header fields as those of the response
    (if (i32.eq (local.get $what) (i32.const 0x31)) (then
      (call $one_field (i32.const 540) (i32.const 7) (i32.const 512) (i32.const 2))
      (call $answer_with (local.get $out) (i32.load (i32.const 4)) (i32.const 512) (i32.const 2)) (return)))
    ;; 2: calls of the meter without end
    (if (i32.eq (local.get $what) (i32.const 0x32)) (then (loop $l (call $charge) (br_if $l (i32.eqz (i32.load8_u (i32.const 0)))))
      (call $refused_if (local.get $out) (i32.eq (i32.load8_u (i32.const 8)) (i32.const 11))) (return)))
    ;; 3: an answer taken from a future twice
    (if (i32.eq (local.get $what) (i32.const 0x33)) (then
      (call $charge)
      (local.set $a (i32.load (i32.const 8)))
      (call $future (local.get $a) (i32.const 0))
      (call $future (local.get $a) (i32.const 0))
      (call $refused_if (local.get $out) (i32.load8_u (i32.const 8))) (return)))
    ;; 4: a list of header fields dropped twice
    (if (i32.eq (local.get $what) (i32.const 0x34)) (then
      (local.set $a (call $no_fields))
      (call $drop_fields (local.get $a))
      (call $drop_fields (local.get $a))))
    ;; 5: an endless loop that calls the host at every turn
    (if (i32.eq (local.get $what) (i32.const 0x35)) (then
      (loop $l (call $drop_fields (call $headers (local.get $request))) (br $l))))
    ;; 9: an endless loop of filling memory
    (if (i32.eq (local.get $what) (i32.const 0x39)) (then
      (loop $l (memory.fill (i32.const 8192) (i32.const 0) (i32.const 65536)) (br $l))))
    (unreachable))
)
