package names

import "slices"

// synonymous lists words of the same meaning: numbers, and the old and new names of cities.
var synonymous = [...][]string{
	{"1", "one"}, {"2", "two"}, {"3", "three"}, {"4", "four"}, {"5", "five"}, {"6", "six"}, {"7", "seven"}, {"8", "eight"},
	{"9", "nine"}, {"10", "ten"}, {"100", "hundred"}, {"1st", "first"}, {"2nd", "second"}, {"3rd", "third"},
	{"bombay", "mumbai"}, {"madras", "chennai"}, {"calcutta", "kolkata"}, {"baroda", "vadodara"}, {"poona", "pune"},
	{"pondicherry", "puducherry", "pondy"}, {"bangalore", "bengaluru"}, {"gurgaon", "gurugram"}, {"simla", "shimla"},
	{"orissa", "odisha"}, {"om", "aum"},
}

// shortened lists abbreviations, each with the words that it may stand for. Unlike those of long, which are
// certain, they are not expanded in names.
var shortened = [...][]string{
	{"inds", "industries"}, {"engrs", "engineers"}, {"svcs", "services"}, {"soln", "solutions"},
	{"const", "construction", "constructions"}, {"fpc", "producer"}, {"fpo", "producer"},
}

// synonyms returns the words that a typed word may stand for, nil if it is only itself.
func synonyms(typed string) []string {
	for _, words := range synonymous {
		if slices.Contains(words, typed) {
			return words
		}
	}
	for _, words := range shortened {
		if words[0] == typed {
			return words
		}
	}
	return nil
}
