package simulate

import "strings"

// names are the names of people, most popular first.
const names = `ada ben chloe diego emil fatima grace hugo ines jonas kaya leo mira nils olga pablo quinn rosa sami tara
uma viktor wanda xenia yusuf zoe amir bella carlos dina elif finn greta hana ivan jade kofi lena mateo nora oscar priya
rafael selma tomas ursula vera will ximena yara zeno alma boris celia dario esther felix gloria henrik irma jamal katja
luca maya noah odile petra remy sofia theo ulla vito willa yann zara anton bruna cyril delia enzo flora gustav heidi
igor juno kim lars malik nadia otto paula rafi stella timo valerie`

// cities are the cities that people live in.
const cities = `Lisbon Oslo Nairobi Kyoto Montréal Zürich Valparaíso Tallinn Melbourne Istanbul Oaxaca Kraków Accra Seoul`

// catalogue has one line per interest, most popular first, with the subjects of its pins.
const catalogue = `
recipes: one-pot lentil stew, miso noodles, roasted squash, overnight focaccia, green shakshuka
travel: night train itinerary, island ferry route, mountain hut trail, old town walk, coastal road trip
home-decor: reading corner, entrance shelf, linen curtains, gallery wall, tiny balcony
gardening: raised bed, tomato trellis, shade border, herb spiral, winter greens
fashion: linen suit, denim jacket, wool coat, silk scarf, canvas sneakers
photography: street portrait, long exposure, film roll, golden hour shot, contact sheet
diy: plywood stool, bike rack, window seat, cable tray, pegboard wall
fitness: kettlebell circuit, mobility routine, hill repeats, rowing session, ten-minute stretch
art: gouache study, charcoal portrait, paper collage, museum postcard, plein air landscape
books: short novel, travel diary, essay collection, shelf of mysteries, poetry pamphlet
baking: sourdough loaf, cardamom buns, lemon tart, rye crispbread, olive oil cake
architecture: brick courtyard, timber cabin, concrete library, spiral stair, glass pavilion
ceramics: stoneware mug, raku vase, speckled plate, pinch pot, celadon bowl
hiking: ridge trail, packing list, river crossing, summit sunrise, three-day loop
coffee: pour-over recipe, espresso corner, cold brew jar, milk art, hand grinder
music: vinyl corner, jazz playlist, modular patch, choir score, busking set
typography: serif specimen, letterpress card, shop sign, variable font, monogram
woodworking: dovetail box, walnut spoon, workbench, mortise joint, bent-wood lamp
knitting: fisherman sweater, colourwork mittens, lace shawl, sock heel, chunky beanie
cycling: gravel bike, commuter bag, wheel build, bikepacking setup, café ride
illustration: ink botanical, picture-book spread, map of a street, risograph poster, tiny comic
plants: monstera cutting, moss terrarium, fern shelf, cactus windowsill, propagation station
sewing: linen apron, box tote, patchwork quilt, wrap skirt, mended jeans
minimalism: capsule wardrobe, empty desk, one-bag packing list, plain white room, quiet morning
vegan: cashew ricotta, smoky tofu, beetroot burger, coconut dal, aquafaba meringue
interior-light: paper lantern, clamp lamp, candle wall, daylight kitchen, neon sign
vintage: rotary phone, enamel pot, travel poster, leather satchel, slide projector
camping: tarp shelter, camp stove dinner, hammock spot, kids' tent, fire pit
astronomy: star trail, backyard telescope, eclipse map, lunar sketch, winter constellations
surf: longboard quiver, dawn patrol, van conversion, wax comb, reef break map
origami: paper crane, modular star, folded lampshade, envelope fold, tessellation
calligraphy: brush alphabet, wedding envelope, copperplate drill, ink swatch, gilded initial
birds: garden feeder, owl box, field notebook, heron at dusk, migration map
tea: gongfu tray, chai blend, matcha bowl, iced hibiscus, tea shelf
jewellery: hammered ring, beaded necklace, wire earrings, signet wax, silver chain
games: deck-building night, hand-drawn dungeon, chess puzzle, puzzle box, tabletop terrain
robotics: line follower, printed gripper, sensor board, walking kit, tiny rover
mushrooms: chanterelle map, oyster log, spore print, risotto basket, forest floor
cheese: farmhouse board, fresh ricotta, blue wedge, fondue night, grilled halloumi
letterpress: wooden type, visiting card, broadside, ink roller, printed menu
sailing: knot board, dinghy restoration, harbour chart, weekend crossing, deck layout
perfume: vetiver accord, solid balm, citrus cologne, rose study, incense blend
bees: first hive, honey shelf, wildflower strip, wax candle, swarm box
trains: sleeper cabin, station clock, model layout, panorama line, timetable poster
maps: hand-drawn atlas, metro map, contour print, star chart, treasure map
puppets: shadow theatre, felt fox, marionette joint, paper stage, sock dragon
clouds: cumulus study, weather diary, storm front, mountain cap, sunset gradient
lighthouses: storm lens, keeper's cottage, cliff path, foghorn night, striped tower
`

// adjectives start a title, and tails end it.
const (
	adjectives = `simple quiet bold weekend rainy-day favourite early slow bright small-space handmade classic unexpected
blue smoky sunlit budget perfect first late-summer winter old-school borrowed warm two-hour crooked`
	tails = `|for beginners|on a small budget|in an afternoon|from scratch|worth copying|we keep coming back to|by the sea|
with what is at hand|that always works|in three steps|under the roof|for two|before breakfast|nobody talks about`
)

// themes are names of boards for a person with more boards than interests.
const themes = `someday weekend gifts small-home summer to-try before-forty kids studio notebook inspiration winter`

// surfaces are where actions happen, and devices are what people use.
const (
	surfaces = `home home home search related board`
	devices  = `ios android web`
)

// vocabulary is the parsed word lists.
type vocabulary struct {
	names, cities, adjectives, themes, surfaces, devices []string
	tails                                                []string // each with a leading space, the first empty
	interests                                            []interest
}

type interest struct {
	name     string
	subjects []string
}

func newVocabulary() *vocabulary {
	v := &vocabulary{
		names:      strings.Fields(names),
		cities:     strings.Fields(cities),
		adjectives: strings.Fields(adjectives),
		themes:     strings.Fields(themes),
		surfaces:   strings.Fields(surfaces),
		devices:    strings.Fields(devices),
	}
	for tail := range strings.SplitSeq(tails, "|") {
		if tail = strings.TrimSpace(tail); tail != "" {
			tail = " " + tail
		}
		v.tails = append(v.tails, tail)
	}
	for line := range strings.Lines(strings.TrimSpace(catalogue)) {
		name, subjects, _ := strings.Cut(strings.TrimSpace(line), ": ")
		v.interests = append(v.interests, interest{name: name, subjects: strings.Split(subjects, ", ")})
	}
	return v
}
