package schemas_test

import (
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

func ExampleParseLine() {
	line, err := schemas.ParseLine([]byte(`{"stream":"follows","id":"e-1","time":"2026-11-20T10:00:00Z","actor":"user:7","verb":"follow","object":"board:9"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	arrival := schemas.MicrosOf(time.Date(2026, 11, 20, 10, 0, 1, 0, time.UTC))
	fmt.Println(line.Stream, line.Key, line.Validate(arrival, schemas.DefaultVerbs()))

	early := arrival - schemas.Micros(time.Hour.Microseconds())
	fmt.Println("an hour before:", line.Validate(early, schemas.DefaultVerbs()) != nil)
	// Output:
	// follows board:9 <nil>
	// an hour before: true
}

func ExampleParseShardedID() {
	id, err := schemas.ParseShardedID("241294492511762325")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(id.Split())
	again, err := schemas.MakeShardedID(3429, 1, 7075733)
	fmt.Println(again, err)
	// Output:
	// 3429 1 7075733
	// 241294492511762325 <nil>
}

func ExampleParseFollowee() {
	board, err := schemas.ParseFollowee("board:9")
	fmt.Println(board, err)
	_, err = schemas.ParseFollowee("pin:42")
	fmt.Println("a pin can be followed:", err == nil)
	// Output:
	// board:9 <nil>
	// a pin can be followed: false
}
