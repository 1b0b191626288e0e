/* Files of tokenizers that are damaged, or that have what is not supported: one message, which names it. */
#include "data/tokenizer/tokenizer.h"
#include "tests/data/fixtures.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A small tokenizer with everything, in which one member after the other is replaced. */
static const char whole[] =
    "{'version':'1.0','truncation':null,'padding':null,'added_tokens':[{'id':4,'content':'<x>','single_word':"
    "false,"
    "'lstrip':false,'rstrip':false,'normalized':true,'special':true}],"
    "'normalizer':{'type':'Sequence','normalizers':[{'type':'NFC'},{'type':'Replace','pattern':{'String':'c'}"
    ",'content':'a'}]},"
    "'pre_tokenizer':{'type':'Split','pattern':{'Regex':'a+'},'behavior':'Isolated','invert':false},"
    "'post_processor':{'type':'TemplateProcessing','single':[{'SpecialToken':{'id':'<x>','type_id':0}},"
    "{'Sequence':{'id':'A','type_id':0}}],'pair':[],'special_tokens':{'<x>':{'id':'<x>','ids':[4],'tokens':['"
    "<x>']}}},"
    "'decoder':{'type':'Metaspace','replacement':'_','prepend_scheme':'never','split':true},"
    "'model':{'type':'BPE','dropout':null,'unk_token':null,'continuing_subword_prefix':null,'end_of_word_"
    "suffix':null,"
    "'fuse_unk':false,'byte_fallback':false,'ignore_merges':false,'vocab':{'a':0,'b':1,'ab':2,'_':3},'merges'"
    ":[['a','b']]}}";

/* Writes and frees the file; ' stands for ". */
static void put_quoted(char *text) {
    for (char *c = text; *c; c++) *c = *c == '\'' ? '"' : *c;
    put_text("tokenizer.json", text);
    free(text);
}

/* The file with the first `from` replaced by `to`. */
static void put_changed(const char *from, const char *to) {
    const char *at = strstr(whole, from);
    char *text;
    assert_non_null(at);
    assert_true(asprintf(&text, "%.*s%s%s", (int)(at - whole), whole, to, at + strlen(from)) > 0);
    put_quoted(text);
}

static void opens(void **state) {
    (void)state;
    struct tokenizer *tokenizer;
    struct encoder *encoder;
    struct ids ids = {0};
    put_changed("", "");
    if (tokenizer_open("tokenizer.json", &tokenizer)) fail_msg("%s", gdn_failure());
    assert_int_equal(encoder_create(tokenizer, &encoder), GDN_OK);
    assert_int_equal(encoder_encode(encoder, "b<x>", 4, true, &ids), GDN_OK);
    const int32_t expected[] = {4, 1, 4};
    assert_int_equal(ids.count, 3);
    assert_memory_equal(ids.id, expected, sizeof expected);
    ids_free(&ids);
    encoder_free(encoder);
    tokenizer_close(tokenizer);
}

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *words;
    } cases[] = {
        {"'version'", "version", "tokenizer.json is no JSON of a tokenizer|line 1"},
        {"'1.0'", "'2.0'", "version is not 1.0"},
        {"'padding':null", "'padding':{}", "'padding' is not supported"},
        {"'truncation':null", "'truncation':{'max_length':5}",
         "'truncation' is not supported|null is expected"},
        {"'version'", "'extra':1,'version'", "'extra' is not supported"},
        {"'type':'NFC'", "'type':'StripAccents'", "normalizer.normalizers[0]|'StripAccents'|NFC, NFD"},
        {"'type':'NFC'", "'type':'NFC','form':2", "normalizer.normalizers[0]|'form' is not supported"},
        {"'String':'c'", "'String':''", "normalizer.normalizers[1].pattern|empty"},
        {"'Regex':'a+'", "'Regex':'a('", "pre_tokenizer.pattern|no regular expression"},
        {"'Isolated'", "'isolated'", "pre_tokenizer|'isolated'|MergedWithNext"},
        {"'type':'Split'", "'type':'BertPreTokenizer'",
         "pre_tokenizer|'BertPreTokenizer'|ByteLevel, Metaspace"},
        {"'invert':false", "'invert':0", "'invert'|true or false"},
        {"'type':'TemplateProcessing'", "'type':'BertProcessing'", "post_processor|'BertProcessing'"},
        {"{'Sequence':{'id':'A'", "{'Sequence':{'id':'B'", "post_processor.single[1]|sequence A"},
        {"{'SpecialToken':{'id':'<x>'", "{'SpecialToken':{'id':'<y>'", "post_processor.single[0]|'<y>'"},
        {"'ids':[4]", "'ids':[-4]", "post_processor.single[0]|no ids"},
        {"'type':'Metaspace','rep", "'type':'WordPiece','rep", "decoder|'WordPiece'"},
        {"'replacement':'_'", "'replacement':'__'", "decoder|'replacement'|one character"},
        {"'prepend_scheme':'never'", "'prepend_scheme':'last'", "decoder|'last'"},
        {"'type':'BPE'", "'type':'Unigram'", "model|'Unigram'|BPE"},
        {"'dropout':null", "'dropout':0.1", "model|'dropout' is not supported"},
        {"'continuing_subword_prefix':null", "'continuing_subword_prefix':'##'",
         "'continuing_subword_prefix'"},
        {"'end_of_word_suffix':null", "'end_of_word_suffix':'</w>'", "'end_of_word_suffix' is not supported"},
        {"'fuse_unk'", "'fuse'", "model|'fuse' is not supported"},
        {"'unk_token':null", "'unk_token':'?'", "model|the vocabulary has no '?'"},
        {"'b':1", "'b':0", "model.vocab|id 0, which another token has"},
        {"'b':1", "'b':-1", "model.vocab|'b' has no id"},
        {"'b':1", "'b':99999999999", "model.vocab|'b' has no id"},
        {"'vocab':{'a':0,'b':1,'ab':2,'_':3}", "'vocab':[]", "model.vocab|no object"},
        {"['a','b']", "['a','c']", "model.merges[0]|no 'c'"},
        {"['a','b']", "['b','a']", "model.merges[0]|no 'ba'"},
        {"['a','b']", "'a b c'", "model.merges[0]|two tokens"},
        {"['a','b']", "'a b',['a','b']", "model.merges[1]|another way"},
        {"'id':4", "'id':7", "added_tokens[0]|'<x>' has id 7|make it 4"},
        {"'content':'<x>'", "'content':''", "added_tokens[0]|empty"},
        {"'single_word':false", "'single_word':null", "added_tokens[0]|'single_word'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tokenizer *tokenizer;
        put_changed(cases[i].from, cases[i].to);
        expect_failure(tokenizer_open("tokenizer.json", &tokenizer), GDN_INPUT, cases[i].words);
        assert_null(tokenizer);
    }
    struct tokenizer *tokenizer;
    expect_failure(tokenizer_open("nothing.json", &tokenizer), GDN_INPUT, "nothing.json|No such file");
}

/* A form of a form, of characters that join or change their order: what stands for the text's first one,
 * which alone gets a mark here, ends between two characters. */
static void forms_in_a_row(void **state) {
    (void)state;
    static const char *const forms[] = {"NFC", "NFD", "NFKC", "NFKD"};
    static const char *const texts[] = {"e\u0301a", "\u00e9\u1dcaa", "e\u0323\u0301a", "\ufb06\u0323a"};
    for (int k = 0; k < 4 * 4 * 4; k++) {
        struct tokenizer *tokenizer;
        struct encoder *encoder;
        struct ids ids = {0};
        char changed[400];
        snprintf(changed, sizeof changed,
                 "'%s'},{'type':'%s'}]},'pre_tokenizer':{'type':'Sequence','pretokenizers':[{'type':'Split',"
                 "'pattern':{'Regex':'.'},'behavior':'Isolated','invert':false},{'type':'Metaspace',"
                 "'replacement':'_','prepend_scheme':'first'}]}",
                 forms[k % 4], forms[k / 4 % 4]);
        put_changed("'NFC'},{'type':'Replace','pattern':{'String':'c'},'content':'a'}]},'pre_tokenizer':{"
                    "'type':'Split','pattern':{'Regex':'a+'},'behavior':'Isolated','invert':false}",
                    changed);
        assert_int_equal(tokenizer_open("tokenizer.json", &tokenizer), GDN_OK);
        assert_int_equal(encoder_create(tokenizer, &encoder), GDN_OK);
        const char *text = texts[k / 16];
        if (encoder_encode(encoder, text, strlen(text), false, &ids)) fail_msg("%s", gdn_failure());
        /* before each that it has become, which the vocabulary lacks, and not before the last */
        assert_true(ids.count >= 2 && ids.id[0] == 3 && ids.id[ids.count - 1] == 0);
        for (long i = 0; i < ids.count - 1; i++) assert_int_equal(ids.id[i], 3);
        ids_free(&ids);
        encoder_free(encoder);
        tokenizer_close(tokenizer);
    }
}

/* Decoders behind one that makes bytes: parts of characters stay what they are, and end with their token. */
static void parts_of_characters(void **state) {
    (void)state;
    static const struct {
        const char *decoders;
        int32_t ids[5]; /* of _ a <0x80> <0xC4> <0xE2> */
        long count;
        const char *bytes;
    } cases[] = {
        {"{'type':'Metaspace','replacement':'_','prepend_scheme':'never'}", {1, 4, 0, 1}, 4, "a\xe2 a"},
        {"{'type':'Fuse'},{'type':'Metaspace','replacement':'_'}", {0, 1, 4, 0, 3}, 5, "a\xe2\xc4"},
        {"{'type':'Fuse'},{'type':'Strip','content':'a','start':2,'stop':1}",
         {1, 4, 2, 1, 2},
         5,
         "\xe2\x80\x61\x80"},
        {"{'type':'Fuse'},{'type':'Replace','pattern':{'Regex':'.a'},'content':'b'}",
         {4, 1, 1, 2, 3},
         5,
         "\x62\x61\x80\xc4"},
        {"{'type':'ByteLevel'}", {3, 1}, 2, "\xc4\x61"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tokenizer *tokenizer;
        struct text found = {0};
        char *text;
        assert_true(
            asprintf(&text,
                     "{'decoder':{'type':'Sequence','decoders':[{'type':'ByteFallback'},%s]},'model':{"
                     "'type':'BPE','vocab':{'_':0,'a':1,'<0x80>':2,'<0xC4>':3,'<0xE2>':4},'merges':[]}}",
                     cases[i].decoders) > 0);
        put_quoted(text);
        if (tokenizer_open("tokenizer.json", &tokenizer)) fail_msg("%s", gdn_failure());
        assert_int_equal(tokenizer_decode_bytes(tokenizer, cases[i].ids, cases[i].count, &found), GDN_OK);
        if (found.length != strlen(cases[i].bytes) || memcmp(found.bytes, cases[i].bytes, found.length))
            fail_msg("%s: '%.*s'", cases[i].decoders, (int)found.length, found.bytes);
        text_free(&found);
        tokenizer_close(tokenizer);
    }
}

/* An expression that tries too much ends in a message. */
static void hard_expression(void **state) {
    (void)state;
    struct tokenizer *tokenizer;
    struct encoder *encoder;
    struct ids ids = {0};
    char text[60];
    memset(text, 'b', sizeof text);
    put_changed("'Regex':'a+'", "'Regex':'(b|bb)*[^b]'");
    assert_int_equal(tokenizer_open("tokenizer.json", &tokenizer), GDN_OK);
    assert_int_equal(encoder_create(tokenizer, &encoder), GDN_OK);
    expect_failure(encoder_encode(encoder, text, sizeof text, false, &ids), GDN_INPUT, "regular expression");
    ids_free(&ids);
    encoder_free(encoder);
    tokenizer_close(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(opens, clear_failure),
        cmocka_unit_test_setup(refusals, clear_failure),
        cmocka_unit_test_setup(forms_in_a_row, clear_failure),
        cmocka_unit_test_setup(parts_of_characters, clear_failure),
        cmocka_unit_test_setup(hard_expression, clear_failure),
    };
    return cmocka_run_group_tests(tests, scratch_setup, NULL);
}
